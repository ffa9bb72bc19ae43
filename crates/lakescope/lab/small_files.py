"""Lab small-files: an event table written by day, then read.

bad    Each of 40 tasks holds rows of every one of 50 days and writes its own file for each:
       2,000 files of a few kB, which the report has to list and open one by one.
good   The rows of a day are brought together before writing: 50 files.
"""
from common import F, main, number

DAYS = 50
CONF = {"spark.sql.shuffle.partitions": "16"}


def tables(spark, scale):
    events = spark.range(int(1_000_000 * scale), numPartitions=4).select(
        F.col("id").alias("event_id"),
        F.expr(f"date_add(DATE'2025-03-01', int(pmod(xxhash64(id, 'day'), {DAYS})))").alias("day"),
        number("kind", 20).alias("kind"),
        number("ms", 10_000).alias("ms"),
    )
    return {"events": events}


def write_and_report(events, spark, folder, variant):
    path = f"{folder}/by_day_{variant}"
    spark.sparkContext.setJobDescription("write by day")
    events.write.mode("overwrite").partitionBy("day").parquet(path)
    spark.sparkContext.setJobDescription("report")
    found = spark.read.parquet(path).groupBy("day", "kind").agg(F.sum("ms").alias("ms"), F.count("*").alias("n")).collect()
    return sum(row.ms * (1 + row.kind) * row.day.day for row in found), sum(row.n for row in found)


def bad(spark, read, folder, scale):
    # At least one task, at most as many as make 2,000 files at scale 1.
    tasks = max(1, round(40 * scale))
    return write_and_report(read("events").repartition(tasks), spark, folder, "bad")


def good(spark, read, folder, scale):
    return write_and_report(read("events").repartition("day"), spark, folder, "good")


main("small-files", tables, {"bad": bad, "good": good}, {"bad": CONF, "good": CONF})
