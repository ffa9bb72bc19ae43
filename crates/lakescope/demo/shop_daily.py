"""The daily job of a small web shop: STEP FOLDER [--name value ...]

Every order without an account is booked on one guest, so one customer has most orders. The step
`daily_sales` builds a table of the orders of each partition in memory; the partition with the
guest does not fit. With --spread N the orders of one customer are spread over N partitions.
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ORDERS = 6_000_000
CUSTOMERS = 200_000
GUEST = 0
# Of 100 orders, those of the guest.
GUEST_SHARE = 80


def pick(salt, many, of="id"):
    """The same number for the same row, every time."""
    return F.pmod(F.xxhash64(F.col(of), F.lit(salt)), F.lit(many))


def make_shop(spark, folder, options):
    """Orders and customers."""
    orders = int(ORDERS * options.scale)
    spark.range(orders, numPartitions=8).select(
        F.col("id").alias("order_id"),
        F.when(pick("guest", 100) < GUEST_SHARE, GUEST).otherwise(1 + pick("customer", CUSTOMERS - 1)).alias("customer_id"),
        (pick("amount", 20_000) / 100).alias("amount"),
        F.sha2(F.concat(F.lit("order "), F.col("id").cast("string")), 256).alias("reference"),
    ).write.mode("overwrite").parquet(f"{folder}/orders")
    spark.range(CUSTOMERS, numPartitions=2).select(
        F.col("id").alias("customer_id"), F.concat(F.lit("country "), pick("country", 30)).alias("country")
    ).write.mode("overwrite").parquet(f"{folder}/customers")
    print(f"{orders} orders, {CUSTOMERS} customers")


def clean_orders(spark, folder, options):
    """Orders that were paid for."""
    clean = spark.read.parquet(f"{folder}/orders").where("amount > 0.5")
    clean.write.mode("overwrite").parquet(f"{folder}/clean_orders")
    print(f"{spark.read.parquet(f'{folder}/clean_orders').count()} clean orders")


def daily_sales(spark, folder, options):
    """Orders with the country of their customer."""
    orders = spark.read.parquet(f"{folder}/clean_orders")
    customers = spark.read.parquet(f"{folder}/customers")
    keys = ["customer_id"]
    if options.spread > 1:
        keys.append("part")
        orders = orders.withColumn("part", F.pmod("order_id", F.lit(options.spread)))
        parts = spark.range(options.spread).select(F.col("id").alias("part"))
        customers = customers.crossJoin(F.broadcast(parts))
    sales = (
        customers.join(orders.hint("SHUFFLE_HASH"), keys)
        .groupBy("country")
        .agg(F.sum("amount").alias("amount"), F.countDistinct("reference").alias("orders"))
    )
    sales.write.mode("overwrite").parquet(f"{folder}/sales")
    print(f"sales of {spark.read.parquet(f'{folder}/sales').count()} countries")


def report(spark, folder, options):
    """The best countries."""
    for row in spark.read.parquet(f"{folder}/sales").orderBy(F.desc("amount"), "country").limit(3).collect():
        print(f"{row.country}: {row.orders} orders, {row.amount:.2f}")


STEPS = {step.__name__: step for step in (make_shop, clean_orders, daily_sales, report)}

if __name__ == "__main__":
    words = argparse.ArgumentParser()
    words.add_argument("step", choices=STEPS)
    words.add_argument("folder")
    words.add_argument("--scale", type=float, default=1.0)
    words.add_argument("--spread", type=int, default=1)
    options = words.parse_args()
    with SparkSession.builder.appName(f"shop_daily: {options.step}").getOrCreate() as spark:
        STEPS[options.step](spark, options.folder, options)
