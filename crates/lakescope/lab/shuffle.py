"""Lab shuffle: turnover by category and region.

bad    `distinct()` "to be safe" on rows that are unique anyway, so that every wide column
       crosses the network; then two joins by shuffle, and the aggregation last.
good   Only the columns that are needed, aggregated first; two small tables are broadcast.
"""
from common import F, main, number, text

PRODUCTS, STORES = 2_000, 60


def tables(spark, scale):
    sales = spark.range(int(3_000_000 * scale), numPartitions=8).select(
        F.col("id").alias("sale_id"),
        number("product", PRODUCTS).alias("product_id"),
        number("store", STORES).alias("store_id"),
        number("cents", 50_000).alias("cents"),
        text("receipt").alias("receipt"),
        text("comment").alias("comment"),
    )
    products = spark.range(PRODUCTS, numPartitions=1).select(
        F.col("id").alias("product_id"), number("category", 30).alias("category")
    )
    stores = spark.range(STORES, numPartitions=1).select(
        F.col("id").alias("store_id"), number("region", 8).alias("region")
    )
    return {"sales": sales, "products": products, "stores": stores}


def answer(turnover):
    found = turnover.collect()
    return sum(row.cents * (1 + row.category + 100 * row.region) for row in found), len(found)


def bad(spark, read, folder, scale):
    sales = read("sales").distinct()
    joined = sales.join(read("products").hint("merge"), "product_id").join(read("stores").hint("merge"), "store_id")
    return answer(joined.groupBy("category", "region").agg(F.sum("cents").alias("cents")))


def good(spark, read, folder, scale):
    sums = read("sales").groupBy("product_id", "store_id").agg(F.sum("cents").alias("cents"))
    joined = sums.join(F.broadcast(read("products")), "product_id").join(F.broadcast(read("stores")), "store_id")
    return answer(joined.groupBy("category", "region").agg(F.sum("cents").alias("cents")))


PARTITIONS = {"spark.sql.shuffle.partitions": "16"}
main("shuffle", tables, {"bad": bad, "good": good}, {"bad": PARTITIONS, "good": PARTITIONS})
