"""Lab spill: how much the readings of every sensor jump.

bad    Four shuffle partitions: each has to be sorted as a whole, does not fit in its share of
       memory and goes to disk.
good   The same rows in 64 partitions: each fits.

The keys are even, so this is not skew: more memory a task or smaller tasks is all that helps.
"""
from pyspark.sql import Window

from common import F, main, number, text

SENSORS = 500_000
SHARED = {
    # Leaves about 140 MB of a heap of 1 GB for execution, so that the data can stay small.
    "spark.memory.fraction": "0.2",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}


def tables(spark, scale):
    readings = spark.range(int(5_000_000 * scale), numPartitions=8).select(
        number("sensor", SENSORS).alias("sensor_id"),
        F.col("id").alias("reading_id"),
        number("value", 1_000_000).alias("value"),
        text("note").alias("note"),
    )
    return {"readings": readings}


def jumps(spark, read, folder, scale):
    in_order = Window.partitionBy("sensor_id").orderBy("reading_id")
    steps = read("readings").withColumn("jump", F.abs(F.col("value") - F.lag("value").over(in_order)))
    # The notes are used after the sort, so the sort has to carry them.
    row = steps.agg(F.sum("jump").alias("jump"), F.sum(F.crc32("note")).alias("notes"), F.count("*").alias("n")).first()
    return row.jump + row.notes, row.n


main(
    "spill",
    tables,
    {"bad": jumps, "good": jumps},
    {
        "bad": {**SHARED, "spark.sql.shuffle.partitions": "4"},
        "good": {**SHARED, "spark.sql.shuffle.partitions": "64"},
    },
)
