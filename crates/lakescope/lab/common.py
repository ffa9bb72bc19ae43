"""What the five lab scripts share.

Each script is one small business question, answered twice: `bad` as one often meets it,
`good` repaired. Both read the same input and must print the same result.

    spark-submit [--master M] [--conf spark.eventLog.enabled=true ...] skew.py --variant bad --data DIR --scale 1.0
    PYSPARK_SUBMIT_ARGS="--master M --conf ... pyspark-shell" python skew.py --variant bad --data DIR --scale 1.0

Master, memory and event log belong to the caller; the scripts set none of them. The figures
assume 1 GB of heap for each JVM. `--variant data` only makes the input and writes no event
log, so that afterwards both variants start from a cold JVM.
"""
import argparse
import json
import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def number(salt, below, of="id"):
    """A column of evenly spread numbers 0 to below-1 that depends on nothing but `of`."""
    return F.pmod(F.xxhash64(F.col(of), F.lit(salt)), F.lit(below))


def text(salt, of="id"):
    """A column of text that does not compress: 64 hexadecimal digits."""
    return F.sha2(F.concat_ws(salt, F.col(of).cast("string"), F.lit("")), 256)


def session(name, conf):
    builder = SparkSession.builder.appName(name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def make_input(name, folder, tables):
    """Writes what `tables(spark)` yields, as an application of its own that leaves no log."""
    spark = session(f"lab {name} data", {"spark.eventLog.enabled": "false"})
    for table, frame in tables(spark).items():
        frame.write.mode("overwrite").parquet(f"{folder}/{table}")
    spark.stop()
    # Notes that all tables are there. A folder behind a URL gets no note and is made each time.
    if os.path.isdir(folder):
        with open(f"{folder}/complete", "w"):
            pass


def main(name, tables, variants, conf):
    """Runs one lab.

    tables(spark, scale) gives the input as {table: frame}. variants is {"bad": f, "good": f};
    f(spark, read, folder, scale) returns (result, rows), where read(table) gives a frame.
    conf is {"bad": {...}, "good": {...}}.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", choices=["bad", "good", "data"], required=True)
    parser.add_argument("--data", required=True, help="folder for input and output, seen by all executors")
    parser.add_argument("--scale", type=float, default=1.0)
    args = parser.parse_args()

    folder = f"{args.data}/{name}-{args.scale:g}"
    if args.variant == "data" or not os.path.exists(f"{folder}/complete"):
        make_input(name, folder, lambda spark: tables(spark, args.scale))
    if args.variant == "data":
        print(json.dumps({"variant": "data", "result": None, "rows": 0}))
        return

    spark = session(f"lab {name} {args.variant}", conf[args.variant])
    result, rows = variants[args.variant](
        spark, lambda table: spark.read.parquet(f"{folder}/{table}"), folder, args.scale
    )
    spark.stop()
    print(json.dumps({"variant": args.variant, "result": result, "rows": rows}))
