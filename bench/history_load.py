"""Keep Spark's own History Server running over one event log, for somebody else to ask it.

Prints one JSON line once the log has been read, {"address": ..., "pid": ...}, and stops the server
when standard input ends.

usage: history_load.py LOG [--heap 4g] [--timeout 900] [--spark-home DIR]
"""
import argparse
import json
import os
import sys
import tempfile
import time

import history_server


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("--heap", default="4g")
    parser.add_argument("--timeout", type=float, default=900, help="seconds")
    parser.add_argument("--spark-home")
    args = parser.parse_args()
    home = history_server.spark_home(args.spark_home)
    deadline = time.monotonic() + args.timeout
    with tempfile.TemporaryDirectory() as folder:
        for name in ("logs", "conf"):
            os.mkdir(os.path.join(folder, name))
        history_server.link_log(args.log, os.path.join(folder, "logs"))
        with history_server.Server(home, args.heap, folder) as server:
            address = f"http://127.0.0.1:{server.wait_for_port(deadline)}"
            application = history_server.wait_until_listed(server, f"{address}/api/v1", deadline)
            history_server.get(f"{address}/api/v1/applications/{application['id']}/jobs", deadline)
            print(json.dumps({"address": address, "pid": server.process.pid}), flush=True)
            sys.stdin.read()


main()
