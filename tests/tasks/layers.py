# Databricks notebook source
# MAGIC %md # Which version is seen

# COMMAND ----------

import shop
print("before", shop.version)

# COMMAND ----------

# MAGIC %pip install FOLDER/shop-2.0-py3-none-any.whl

# COMMAND ----------

import shop
print("installed, not restarted", shop.version)
dbutils.library.restartPython()

# COMMAND ----------

import shop
print("restarted", shop.version)
dbutils.notebook.exit(shop.version)

# COMMAND ----------

print("never")
