"""Runs commands of dbt one after the other, until one fails: COMMANDS..."""

import shlex
import subprocess
import sys

for command in sys.argv[1:]:
    words = shlex.split(command)
    if words[:1] != ["dbt"]:
        sys.exit(f"{command!r} is no command of dbt; let it begin with dbt")
    print(f"$ {command}", flush=True)
    try:
        code = subprocess.run(words).returncode
    except FileNotFoundError:
        sys.exit("there is no dbt; give the task the libraries of its adapter, such as dbt-spark")
    if code:
        sys.exit(f"{command} failed with exit code {code}")
