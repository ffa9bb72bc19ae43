//! Node names: which operator a name stands for, whoever runs it.

/// What a node name stands for, before its arguments are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scan,
    Exchange,
    BroadcastExchange,
    SortMergeJoin,
    ShuffledHashJoin,
    BroadcastHashJoin,
    NestedLoopJoin,
    CartesianProduct,
    Filter,
    Project,
    Aggregate,
    SortAggregate,
    Sort,
    TopK,
    Window,
    Generate,
    Expand,
    PythonRows,
    PythonBatches,
    Objects,
    Write,
    Union,
    Limit,
    Coalesce,
    ShuffleRead,
    CacheScan,
    CacheBuild,
    Reused,
    Codegen,
    Adaptive,
    QueryStage,
    Plumbing,
    Subquery,
    Local,
    /// Known, and nothing that a rule looks at: commands, state stores, samples.
    Known,
}

/// The kind of a node; `None` for names that nobody here has heard of.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    let name = name.trim().trim_start_matches(['*', '!', ' ']);
    if let Some(command) = name.strip_prefix("Execute ") {
        return Some(command_kind(command));
    }
    let word = name.split([' ', '(', '[', ',', '<']).next().unwrap_or_default();
    bare(word).or_else(|| bare(without_accelerator(word)))
}

/// Whether a name is Photon's.
pub(crate) fn is_photon(name: &str) -> bool {
    name.trim_start_matches(['*', '!', ' ']).starts_with("Photon")
}

/// Removes what Photon, RAPIDS, Comet and Gluten put around the names of Spark's operators.
fn without_accelerator(word: &str) -> &str {
    const SUFFIXES: [&str; 4] = ["ExecTransformer", "Transformer", "Exec", "Execution"];
    const PREFIXES: [&str; 9] =
        ["PhotonUnion", "Photon", "Gpu", "CometNative", "Comet", "Velox", "CHNative", "Native", "Columnar"];
    let word = SUFFIXES.iter().find_map(|s| word.strip_suffix(s)).unwrap_or(word);
    let inner = PREFIXES.iter().find_map(|p| word.strip_prefix(p)).unwrap_or(word);
    // Two layers are common: `GpuColumnarExchange`, `CometColumnarExchange`.
    match inner.strip_prefix("Columnar").or_else(|| inner.strip_prefix("Regular")) {
        Some(rest) if bare(rest).is_some() && bare(inner).is_none() => rest,
        _ => inner.strip_prefix("Flushable").unwrap_or(inner),
    }
}

/// Names without an accelerator's additions. Sources: `nodeName` of the physical operators of
/// Spark 2.4 to 4.1, the plans of Databricks runtimes, RAPIDS, Comet and Gluten.
fn bare(word: &str) -> Option<Kind> {
    Some(match word {
        "Exchange" | "ShuffleExchange" | "ShuffleExchangeSink" => Kind::Exchange,
        "BroadcastExchange" => Kind::BroadcastExchange,
        "SortMergeJoin" | "SymmetricHashJoin" | "StreamingSymmetricHashJoin" => Kind::SortMergeJoin,
        "ShuffledHashJoin" | "ShuffledSymmetricHashJoin" | "ShuffledAsymmetricHashJoin" | "HashJoin" => {
            Kind::ShuffledHashJoin
        }
        "BroadcastHashJoin" => Kind::BroadcastHashJoin,
        "BroadcastNestedLoopJoin" => Kind::NestedLoopJoin,
        "CartesianProduct" => Kind::CartesianProduct,
        "Filter" => Kind::Filter,
        "Project" | "ProjectAst" => Kind::Project,
        "HashAggregate"
        | "ObjectHashAggregate"
        | "Agg"
        | "GroupingAgg"
        | "Aggregate"
        | "UpdatingSessions"
        | "MergingSessions" => Kind::Aggregate,
        "SortAggregate" => Kind::SortAggregate,
        "Sort" => Kind::Sort,
        "TakeOrderedAndProject" | "TopK" | "TopN" | "WindowGroupLimit" => Kind::TopK,
        "Window" | "RunningWindow" | "RunningWindowFunction" | "WindowInPandas" | "ArrowWindowPython" => Kind::Window,
        "Generate" => Kind::Generate,
        "Expand" => Kind::Expand,
        "BatchEvalPython" | "BatchEvalPythonUDTF" => Kind::PythonRows,
        "Union" => Kind::Union,
        "CollectLimit"
        | "GlobalLimit"
        | "LocalLimit"
        | "Limit"
        | "BaseLimit"
        | "CollectTail"
        | "GlobalLimitAndOffset"
        | "Offset" => Kind::Limit,
        "Coalesce" => Kind::Coalesce,
        "AQEShuffleRead" | "CustomShuffleReader" | "ShuffleExchangeSource" | "ShuffleReader" => Kind::ShuffleRead,
        "InMemoryTableScan" => Kind::CacheScan,
        "InMemoryRelation" => Kind::CacheBuild,
        "ReusedExchange" => Kind::Reused,
        "WholeStageCodegen" | "ShuffleMapStage" | "ResultStage" | "WriteStage" => Kind::Codegen,
        "AdaptiveSparkPlan" => Kind::Adaptive,
        _ if word.ends_with("QueryStage") => Kind::QueryStage,
        _ => return bare_source(word).or_else(|| bare_code(word)).or_else(|| bare_write(word)).or_else(|| rest(word)),
    })
}

fn bare_source(word: &str) -> Option<Kind> {
    Some(match word {
        "Scan"
        | "FileScan"
        | "BatchScan"
        | "MicroBatchScan"
        | "ContinuousScan"
        | "RealTimeStreamScan"
        | "FileSourceScan"
        | "FileGpuScan"
        | "DataSourceV2Scan"
        | "HiveTableScan"
        | "RowDataSourceScan"
        | "Relation"
        | "LogicalRelation"
        | "DataSourceV2Relation"
        | "DataSourceV2ScanRelation"
        | "RelationV2"
        | "HiveTableRelation"
        | "StreamingRelation"
        | "StreamingDataSourceV2Relation"
        | "StreamingDataSourceV2ScanRelation"
        | "IcebergScan"
        | "RowBasedScan" => Kind::Scan,
        "LocalTableScan"
        | "Range"
        | "LocalRelation"
        | "OneRowRelation"
        | "EmptyRelation"
        | "CommandResult"
        | "LocalTableQueryScan" => Kind::Local,
        _ => return None,
    })
}

fn bare_code(word: &str) -> Option<Kind> {
    Some(match word {
        "ArrowEvalPython"
        | "ArrowEvalPythonUDTF"
        | "ArrowAggregatePython"
        | "AggregateInPandas"
        | "MapInPandas"
        | "MapInArrow"
        | "PythonMapInArrow"
        | "FlatMapGroupsInPandas"
        | "FlatMapGroupsInArrow"
        | "FlatMapCoGroupsInPandas"
        | "FlatMapCoGroupsInArrow"
        | "FlatMapGroupsInPandasWithState"
        | "TransformWithStateInPandas"
        | "TransformWithStateInPySpark"
        | "AttachDistributedSequence"
        | "FlatMapGroupsInR"
        | "FlatMapGroupsInRWithArrow"
        | "MapPartitionsInRWithArrow" => Kind::PythonBatches,
        "MapElements"
        | "MapPartitions"
        | "DeserializeToObject"
        | "SerializeFromObject"
        | "MapGroups"
        | "CoGroup"
        | "AppendColumns"
        | "AppendColumnsWithObject"
        | "FlatMapGroupsWithState"
        | "TransformWithState"
        | "ScriptTransformation"
        | "SparkScriptTransformation"
        | "HiveScriptTransformation" => Kind::Objects,
        _ => return None,
    })
}

fn bare_write(word: &str) -> Option<Kind> {
    Some(match word {
        "WriteFiles"
        | "ColumnarWriteFiles"
        | "WriteToDataSourceV2"
        | "WriteToContinuousDataSource"
        | "AppendData"
        | "AppendDataV1"
        | "OverwriteByExpression"
        | "OverwriteByExpressionV1"
        | "OverwritePartitionsDynamic"
        | "ReplaceData"
        | "WriteDelta"
        | "CreateTableAsSelect"
        | "AtomicCreateTableAsSelect"
        | "ReplaceTableAsSelect"
        | "AtomicReplaceTableAsSelect"
        | "DataWritingCommand"
        | "ParquetWriter"
        | "MergeRows"
        | "DeltaInvariantChecker"
        | "InsertIntoHiveTable" => Kind::Write,
        _ => return None,
    })
}

fn rest(word: &str) -> Option<Kind> {
    Some(match word {
        "ColumnarToRow"
        | "RowToColumnar"
        | "InputAdapter"
        | "InputIterator"
        | "CollectMetrics"
        | "EventTimeWatermark"
        | "UpdateEventTimeColumn"
        | "CoalesceBatches"
        | "ShuffleCoalesce"
        | "ResizeBatches"
        | "BringBackToHost"
        | "HostToDevice"
        | "SparkToColumnar"
        | "RowToVeloxColumnar"
        | "VeloxColumnarToRow"
        | "ToRow"
        | "Adapter"
        | "AdaptiveExecutionContext"
        | "ColumnarToCarrierRow"
        | "LoadArrowData"
        | "SubqueryAlias"
        | "ResolvedHint"
        | "View"
        | "SparkColumnarToRow"
        | "MakeBatch" => Kind::Plumbing,
        "Subquery" | "SubqueryBroadcast" | "SubqueryAdaptiveBroadcast" | "ReusedSubquery" | "ScalarSubquery" => {
            Kind::Subquery
        }
        "StateStoreSave"
        | "StateStoreRestore"
        | "SessionWindowStateStoreSave"
        | "SessionWindowStateStoreRestore"
        | "StreamingDeduplicate"
        | "StreamingDeduplicateWithinWatermark"
        | "StreamingGlobalLimit"
        | "StreamingLocalLimit"
        | "Sample"
        | "MultiResultSafe"
        | "Command"
        | "DeltaVacuum"
        | "UnionLoop"
        | "UnionLoopRef"
        | "Distinct"
        | "Deduplicate"
        | "Join"
        | "Repartition"
        | "RepartitionByExpression"
        | "RebalancePartitions"
        | "Intersect"
        | "Except"
        | "Tail"
        | "WithCTE"
        | "CTERelationDef"
        | "CTERelationRef"
        | "Pivot"
        | "LogicalRDD"
        | "MemoryPlan"
        | "ResolvedTable"
        | "ResolvedIdentifier"
        | "ExternalRDD"
        | "LogicalQueryStage"
        | "SetCommand"
        | "ReturnAnswer" => Kind::Known,
        _ if is_command(word) => command_kind(word),
        _ => return None,
    })
}

/// Commands of catalogs and tables: `ShowTables`, `CreateTable`, `AlterTable…`, `SetCatalogCommand`.
fn is_command(word: &str) -> bool {
    const VERBS: [&str; 20] = [
        "Show", "Create", "Alter", "Drop", "Describe", "Set", "Add", "Refresh", "Rename", "Truncate", "Analyze",
        "Explain", "Cache", "Uncache", "Load", "Replace", "Delete", "Merge", "Update", "Repair",
    ];
    word.ends_with("Command") || VERBS.iter().any(|verb| word.starts_with(verb) && word.len() > verb.len())
}

/// Commands that write rows, among all that are executed.
fn command_kind(command: &str) -> Kind {
    const WRITES: [&str; 12] = [
        "InsertInto",
        "SaveInto",
        "TableAsSelect",
        "TableAsSelectCommand",
        "MergeInto",
        "WriteInto",
        "Delete",
        "UpdateCommand",
        "Optimize",
        "DataWritingCommand",
        "SaveAsHiveFile",
        "CopyInto",
    ];
    let name = command.split([' ', '(']).next().unwrap_or_default();
    let name = name.strip_prefix("Gpu").unwrap_or(name);
    match WRITES.iter().any(|w| name.contains(w)) {
        true => Kind::Write,
        false => Kind::Known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_engines_mean_the_same() {
        for (kind_, names) in [
            (
                Kind::Aggregate,
                "HashAggregate PhotonGroupingAgg PhotonAgg GpuHashAggregate CometHashAggregate \
              HashAggregateTransformer RegularHashAggregateExecTransformer FlushableHashAggregateExecTransformer ObjectHashAggregate",
            ),
            (
                Kind::Exchange,
                "Exchange PhotonShuffleExchangeSink GpuColumnarExchange CometExchange CometColumnarExchange ColumnarExchange",
            ),
            (
                Kind::BroadcastExchange,
                "BroadcastExchange GpuBroadcastExchange CometBroadcastExchange ColumnarBroadcastExchange",
            ),
            (
                Kind::BroadcastHashJoin,
                "BroadcastHashJoin PhotonBroadcastHashJoin GpuBroadcastHashJoin BroadcastHashJoinExecTransformer",
            ),
            (
                Kind::NestedLoopJoin,
                "BroadcastNestedLoopJoin PhotonBroadcastNestedLoopJoin CometBroadcastNestedLoopJoin",
            ),
            (
                Kind::SortMergeJoin,
                "SortMergeJoin SortMergeJoin(skew=true) SortMergeJoinExecTransformer CometSortMergeJoin",
            ),
            (
                Kind::Scan,
                "Scan FileScan PhotonScan GpuScan CometScan CometNativeScan BatchScan BatchScanTransformer FileScanTransformer",
            ),
            (
                Kind::Plumbing,
                "ColumnarToRow InputAdapter GpuRowToColumnar VeloxColumnarToRow GpuCoalesceBatches InputIteratorTransformer PhotonColumnarToRow",
            ),
            (
                Kind::ShuffleRead,
                "AQEShuffleRead CustomShuffleReader GpuCustomShuffleReader ColumnarAQEShuffleRead PhotonShuffleExchangeSource",
            ),
            (Kind::TopK, "TakeOrderedAndProject PhotonTopK GpuTopN TakeOrderedAndProjectExecTransformer"),
            (Kind::Codegen, "WholeStageCodegen WholeStageCodegenTransformer PhotonShuffleMapStage PhotonResultStage"),
            (Kind::QueryStage, "ShuffleQueryStage BroadcastQueryStage ResultQueryStage TableCacheQueryStage"),
            (Kind::Window, "Window PhotonWindow GpuRunningWindow WindowExecTransformer"),
        ] {
            for name in names.split_whitespace() {
                assert_eq!(kind(name), Some(kind_), "{name}");
            }
        }
    }

    #[test]
    fn commands_that_write_and_others() {
        assert_eq!(kind("Execute InsertIntoHadoopFsRelationCommand"), Some(Kind::Write));
        assert_eq!(kind("Execute MergeIntoCommand"), Some(Kind::Write));
        assert_eq!(kind("Execute CreateViewCommand"), Some(Kind::Known));
        assert_eq!(kind("AtomicReplaceTableAsSelect"), Some(Kind::Write));
        assert_eq!(kind("ShowTables"), Some(Kind::Known));
        assert_eq!(kind("Set"), None);
        assert_eq!(kind("FancyNewThing"), None);
    }
}
