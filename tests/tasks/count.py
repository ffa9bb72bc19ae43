# Databricks notebook source
# MAGIC %run ./helpers

# COMMAND ----------

dbutils.widgets.text("day", "sunday")
day = dbutils.widgets.get("day")
dbutils.jobs.taskValues.set(key="rows", value=count(day))
dbutils.jobs.taskValues.set("paths", ["/a", "/b"])

# COMMAND ----------

# MAGIC %sh
# MAGIC echo "shell $((40 + 2))"

# COMMAND ----------

inner = dbutils.notebook.run("FOLDER/inner", 120, {"name": day})
dbutils.notebook.exit(f"{day}: {inner}")
