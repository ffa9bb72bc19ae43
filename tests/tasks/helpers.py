# Databricks notebook source
def count(day):
    return len(day)
