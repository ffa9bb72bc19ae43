"""Time Spark's own History Server on one event log.

Starts a History Server of its own on loopback, on a port that the kernel chooses, over a
folder that holds nothing but the log. Asks what a person would ask first: is the
application listed, which jobs did it run, which stages. Prints one JSON line:

    boot_s        from start until the server accepts connections (no log is read yet)
    listed_s      from then until the application is in the list
    jobs_s        the first answer about its jobs (the server reads the whole log for it)
    stages_s      the first answer about its stages
    load_s        listed_s + jobs_s + stages_s
    total_s       boot_s + load_s: from asking to the first full answer
    boot_cpu_s, load_cpu_s, cpu_s     processor time of the server in the same parts
    peak_rss_mb   most resident memory the server had
    jobs, stages  how many it answered with (by default it forgets all but about the last 1,000)

usage: history_server.py LOG [--heap 2g] [--timeout 900] [--spark-home DIR]
Spark is taken from --spark-home, SPARK_HOME or an importable pyspark. Linux only (/proc).
"""
import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

MAIN_CLASS = "org.apache.spark.deploy.history.HistoryServer"
STARTED = re.compile(r"started at https?://[^\s:]+:(\d+)")
MAGIC = {b"\x28\xb5\x2f\xfd": "zstd", b"LZ4B": "lz4", b"\x82SNA": "snappy", b"ZV\x01": "lzf"}


def spark_home(given):
    home = given or os.environ.get("SPARK_HOME")
    if not home:
        spec = importlib.util.find_spec("pyspark")
        home = spec and os.path.dirname(spec.origin)
    if not home or not os.path.exists(f"{home}/bin/spark-class"):
        sys.exit("no Spark found: set SPARK_HOME or install pyspark")
    return home


def spark_version(home):
    """Reads the version off the core jar's name, which every distribution carries."""
    jars = sorted(pathlib.Path(home, "jars").glob("spark-core_*.jar"))
    return jars[0].stem.split("-")[-1] if jars else "unknown"


def link_log(log, folder):
    """Puts the log alone into `folder`. Spark goes by the name: its end must be the codec."""
    log = pathlib.Path(log).resolve(strict=True)
    if log.is_dir():  # rolling logs are found by the folder's own name
        name = log.name
    else:
        with open(log, "rb") as f:
            head = f.read(4)
        codec = next((codec for magic, codec in MAGIC.items() if head.startswith(magic)), None)
        name = f"application.{codec}" if codec else "application"
    os.symlink(log, os.path.join(folder, name))


def die_with_parent():
    """Makes the kernel stop the server even if this script is killed outright."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """One running History Server; leaving the `with` block kills it by its process id."""

    def __init__(self, home, heap, folder):
        self.output = os.path.join(folder, "server.out")
        logs, conf = os.path.join(folder, "logs"), os.path.join(folder, "conf")
        options = {
            "spark.history.fs.logDirectory": f"file://{logs}",
            "spark.history.ui.port": "0",
            "spark.history.fs.cleaner.enabled": "false",
        }
        env = dict(
            os.environ,
            SPARK_HOME=home,
            SPARK_CONF_DIR=conf,  # empty: the user's own settings would change the figures
            SPARK_LOCAL_IP="127.0.0.1",
            SPARK_DAEMON_MEMORY=heap,
            SPARK_HISTORY_OPTS=" ".join(f"-D{key}={value}" for key, value in options.items()),
        )
        with open(self.output, "w") as out:
            # spark-class replaces itself by the JVM, so the process id is the server's.
            self.process = subprocess.Popen(
                [f"{home}/bin/spark-class", MAIN_CLASS],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def text(self):
        with open(self.output, errors="replace") as f:
            return f.read()

    def check_alive(self, deadline):
        if self.process.poll() is not None:
            sys.exit(f"history server ended early:\n{self.text()[-3000:]}")
        if time.monotonic() > deadline:
            sys.exit(f"history server gave no answer in time:\n{self.text()[-3000:]}")

    def wait_for_port(self, deadline):
        while not (started := STARTED.search(self.text())):
            self.check_alive(deadline)
            time.sleep(0.02)
        return int(started[1])

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        user, system = int(fields[11]), int(fields[12])
        return (user + system) / os.sysconf("SC_CLK_TCK")

    def peak_rss_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) // 1024


def get(url, deadline):
    # No proxy: the environment may name one, and it must not see requests to loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=max(1, deadline - time.monotonic())) as response:
        return json.load(response)


def wait_until_listed(server, api, deadline):
    while True:
        try:
            if applications := get(f"{api}/applications", deadline):
                return applications[0]
        except urllib.error.URLError:
            pass  # bound, but the handlers are not attached yet
        server.check_alive(deadline)
        time.sleep(0.02)


def measure(server, deadline):
    times = [time.monotonic()]
    port = server.wait_for_port(deadline)
    times.append(time.monotonic())
    boot_cpu_s = server.cpu_s()

    api = f"http://127.0.0.1:{port}/api/v1"
    application = wait_until_listed(server, api, deadline)
    times.append(time.monotonic())
    attempt = application["attempts"][0].get("attemptId")
    base = f"{api}/applications/{application['id']}" + (f"/{attempt}" if attempt else "")
    jobs = get(f"{base}/jobs", deadline)
    times.append(time.monotonic())
    stages = get(f"{base}/stages", deadline)
    times.append(time.monotonic())

    cpu_s = server.cpu_s()
    boot, listed, first_jobs, first_stages = (b - a for a, b in zip(times, times[1:]))
    return {
        "boot_s": round(boot, 2),
        "listed_s": round(listed, 2),
        "jobs_s": round(first_jobs, 2),
        "stages_s": round(first_stages, 2),
        "load_s": round(times[-1] - times[1], 2),
        "total_s": round(times[-1] - times[0], 2),
        "boot_cpu_s": round(boot_cpu_s, 2),
        "load_cpu_s": round(cpu_s - boot_cpu_s, 2),
        "cpu_s": round(cpu_s, 2),
        "peak_rss_mb": server.peak_rss_mb(),
        "jobs": len(jobs),
        "stages": len(stages),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--timeout", type=float, default=900, help="seconds")
    parser.add_argument("--spark-home")
    args = parser.parse_args()

    # A plain SIGTERM would skip the `with` block that kills the server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    home = spark_home(args.spark_home)
    with tempfile.TemporaryDirectory(prefix="history-server-") as folder:
        for name in ("logs", "conf"):
            os.mkdir(os.path.join(folder, name))
        link_log(args.log, os.path.join(folder, "logs"))
        deadline = time.monotonic() + args.timeout
        with Server(home, args.heap, folder) as server:
            figures = measure(server, deadline)
    print(json.dumps({"spark": spark_version(home), "heap": args.heap, **figures}))


if __name__ == "__main__":
    main()
