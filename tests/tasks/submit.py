import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("submitted").getOrCreate()
print("sum", spark.range(int(sys.argv[1])).selectExpr("sum(id)").first()[0])
spark.stop()
