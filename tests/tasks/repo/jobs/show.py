# Databricks notebook source
dbutils.notebook.exit(open("names.txt").read().strip())
