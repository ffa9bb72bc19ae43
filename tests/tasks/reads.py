# Databricks notebook source
rows = dbutils.jobs.taskValues.get("count", "rows")
missing = dbutils.jobs.taskValues.get("count", "missing", default=-1)
dbutils.notebook.exit(f"{rows} {missing} {dbutils.widgets.get('paths')}")
