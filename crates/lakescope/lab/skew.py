"""Lab skew: page views joined with accounts, where most views have no account.

bad    One key, "not signed in", holds 85 % of the rows. The join sends them all to one task;
       adaptive execution leaves it alone because the partition is below its 256 MB.
good   The hot key is split: its views get one of 64 salts, its one account row is repeated 64
       times. Everything else keeps salt 0.
"""
from common import F, main, number, text

NOBODY = 0
SALTS = 64
PARTITIONS = {"spark.sql.shuffle.partitions": "32", "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m"}


def tables(spark, scale):
    accounts = int(400_000 * scale) + 2
    views = spark.range(int(10_000_000 * scale), numPartitions=8).select(
        F.col("id").alias("view_id"),
        F.when(number("hot", 100) < 85, NOBODY).otherwise(1 + number("account", accounts - 1)).alias("account_id"),
        number("ms", 60_000).alias("visible_ms"),
    )
    people = spark.range(accounts, numPartitions=4).select(
        F.col("id").alias("account_id"), text("mail").alias("mail"), number("plan", 5).alias("plan")
    )
    return {"views": views, "accounts": people}


def report(joined):
    # The digests stand for any work per joined row, such as parsing or scoring.
    visitor = F.sha2(F.concat_ws("|", "mail", "view_id"), 512)
    digest = F.crc32(F.sha2(F.concat_ws("|", visitor, "visible_ms"), 512))
    by_plan = joined.groupBy("plan").agg(
        F.count("*").alias("views"), F.sum("visible_ms").alias("ms"), F.sum(digest).alias("digest")
    )
    found = by_plan.collect()
    return sum(row.digest + row.ms for row in found), sum(row.views for row in found)


def bad(spark, read, folder, scale):
    return report(read("views").hint("merge").join(read("accounts"), "account_id"))


def good(spark, read, folder, scale):
    hot = F.col("account_id") == NOBODY
    views = read("views").withColumn("salt", F.when(hot, number("salt", SALTS, of="view_id")).otherwise(0))
    every_salt = F.sequence(F.lit(0).cast("long"), F.lit(SALTS - 1).cast("long"))
    accounts = read("accounts").withColumn(
        "salt", F.explode(F.when(hot, every_salt).otherwise(F.array(F.lit(0).cast("long"))))
    )
    return report(views.hint("merge").join(accounts, ["account_id", "salt"]))


main("skew", tables, {"bad": bad, "good": good}, {"bad": PARTITIONS, "good": PARTITIONS})
