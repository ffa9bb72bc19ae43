"""Compress a plain event log the way Spark's own writer does.

Spark closes the zstd frame each time it flushes, so that a reader of a running
application is never stuck in an open frame. It flushes after every event but the
frequent ones below. A log therefore is many small frames among a few large ones,
which is what a reader has to be fast on; `zstd FILE` alone would give a single frame.

usage: spark_zstd.py PLAIN OUT [LEVEL]     (needs the zstd command; Spark's level is 1)
"""
import re
import subprocess
import sys

NOT_FLUSHED = {
    b"SparkListenerTaskStart",
    b"SparkListenerTaskGettingResult",
    b"SparkListenerTaskEnd",
    b"SparkListenerStageSubmitted",
    b"SparkListenerSpeculativeTaskSubmitted",
    b"SparkListenerEnvironmentUpdate",
}
EVENT = re.compile(rb'^\{"Event":"([^"]+)"')


def frames(lines):
    """Groups lines into what one frame holds."""
    frame = []
    for line in lines:
        frame.append(line)
        event = EVENT.match(line)
        if event and event[1] not in NOT_FLUSHED:
            yield b"".join(frame)
            frame = []
    if frame:
        yield b"".join(frame)


def compress(source, target, level):
    count = 0
    with open(source, "rb") as plain, open(target, "wb") as out:
        for data in frames(plain):
            # A streamed frame does not know its size, and Spark writes no checksum.
            command = ["zstd", "-q", f"-{level}", "--no-check", "--no-content-size", "-c"]
            out.write(subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout)
            count += 1
    return count


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    level = int(sys.argv[3]) if len(sys.argv) == 4 else 1
    print(f"{compress(sys.argv[1], sys.argv[2], level)} frames")
