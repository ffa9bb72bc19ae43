"""Lab oom: how much text each user wrote.

bad    Collects all messages of a user into one list and adds up its lengths afterwards. One
       user is a robot with two thirds of all messages, and a list lives in one task's heap:
       at scale 1 and 1 GB of heap the task ends in OutOfMemoryError and the run fails.
good   Adds up the lengths while aggregating; no row ever grows.

Far below scale 1 the bad variant survives and gives the same result.
"""
from common import F, main, number, text

ROBOT = 0


def tables(spark, scale):
    messages = spark.range(int(9_000_000 * scale), numPartitions=8).select(
        F.when(number("robot", 3) > 0, ROBOT).otherwise(1 + number("user", 50_000)).alias("user_id"),
        F.concat_ws("-", text("words"), text("more words")).alias("message"),
    )
    return {"messages": messages}


def answer(by_user):
    row = by_user.agg(F.sum("letters").alias("letters"), F.max("letters").alias("most"), F.count("*").alias("n")).first()
    return row.letters + row.most, row.n


def bad(spark, read, folder, scale):
    lists = read("messages").groupBy("user_id").agg(F.collect_list("message").alias("messages"))
    lengths = F.aggregate("messages", F.lit(0).cast("long"), lambda sum, message: sum + F.length(message))
    return answer(lists.select("user_id", lengths.alias("letters")))


def good(spark, read, folder, scale):
    return answer(read("messages").groupBy("user_id").agg(F.sum(F.length("message")).alias("letters")))


PARTITIONS = {"spark.sql.shuffle.partitions": "16"}
main("oom", tables, {"bad": bad, "good": good}, {"bad": PARTITIONS, "good": PARTITIONS})
