# Databricks notebook source
rows = spark.range(0, 1000, 1, 4).selectExpr("id % 10 AS k").groupBy("k").count()
print("groups", rows.count())

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT 40 + 2 AS answer
