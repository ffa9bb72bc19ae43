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

folder = "file:FOLDER/listed"
dbutils.fs.mkdirs(folder + "/below")
dbutils.fs.put(folder + "/a.txt", "text", overwrite=True)
print("listed", [(entry.name, entry.size) for entry in dbutils.fs.ls(folder)], dbutils.fs.head(folder + "/a.txt"))

# COMMAND ----------

inner = dbutils.notebook.run("FOLDER/inner", 120, {"name": day})
dbutils.notebook.exit(f"{day}: {inner}")
