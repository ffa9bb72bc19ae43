// The shapes of Spark's own REST answers, as far as the pages use them.

export interface SparkJob {
  jobId: number;
  name: string;
  description?: string;
  submissionTime?: string;
  completionTime?: string;
  stageIds: number[];
  jobGroup?: string;
  status: "RUNNING" | "SUCCEEDED" | "FAILED" | "UNKNOWN";
  numTasks: number;
  numActiveTasks: number;
  numCompletedTasks: number;
  numCompletedIndices?: number;
  numSkippedTasks: number;
  numFailedTasks: number;
  numKilledTasks: number;
  numCompletedStages: number;
  numSkippedStages: number;
  numFailedStages: number;
}

export interface SparkStage {
  status: "ACTIVE" | "COMPLETE" | "FAILED" | "PENDING" | "SKIPPED";
  stageId: number;
  attemptId: number;
  name: string;
  description?: string;
  details?: string;
  submissionTime?: string;
  completionTime?: string;
  failureReason?: string;
  numTasks: number;
  numCompleteTasks: number;
  numFailedTasks: number;
  numKilledTasks: number;
  executorRunTime: number;
  executorCpuTime: number;
  jvmGcTime: number;
  memoryBytesSpilled: number;
  diskBytesSpilled: number;
  peakExecutionMemory?: number;
  inputBytes: number;
  inputRecords: number;
  outputBytes: number;
  outputRecords: number;
  shuffleReadBytes: number;
  shuffleReadRecords: number;
  shuffleWriteBytes: number;
  shuffleWriteRecords: number;
  shuffleFetchWaitTime?: number;
}

export interface SparkExecutor {
  id: string;
  hostPort: string;
  isActive: boolean;
  rddBlocks: number;
  memoryUsed: number;
  diskUsed: number;
  totalCores: number;
  maxTasks: number;
  activeTasks: number;
  failedTasks: number;
  completedTasks: number;
  totalTasks: number;
  totalDuration: number;
  totalGCTime: number;
  totalInputBytes: number;
  totalShuffleRead: number;
  totalShuffleWrite: number;
  isExcluded?: boolean;
  isBlacklisted?: boolean;
  maxMemory: number;
  addTime?: string;
  removeTime?: string;
  removeReason?: string;
  executorLogs?: Record<string, string>;
  memoryMetrics?: {
    usedOnHeapStorageMemory: number;
    usedOffHeapStorageMemory: number;
    totalOnHeapStorageMemory: number;
    totalOffHeapStorageMemory: number;
  };
  peakMemoryMetrics?: Record<string, number>;
}

export interface SparkRdd {
  id: number;
  name: string;
  numPartitions: number;
  numCachedPartitions: number;
  storageLevel: string;
  memoryUsed: number;
  diskUsed: number;
}

export interface SparkEnvironment {
  runtime: Record<string, string>;
  sparkProperties: [string, string][];
  hadoopProperties?: [string, string][];
  systemProperties: [string, string][];
  classpathEntries?: [string, string][];
}
