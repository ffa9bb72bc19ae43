"""Airflow and its provider for Databricks on our Jobs API: whole DAGs, run by Airflow itself, whose
operators create jobs, run them to success and failure, repair, cancel and follow them.

LAKESCOPE_URL and LAKESCOPE_TOKEN name the server. Prints `ok NAME` or `FAIL NAME: WHY` a check; a
word as argument keeps the checks whose name holds it. Airflow's own words go to standard error.

Airflow reads DAGs from files, so it reads this one a second time, as such a file.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

if __name__ == "__main__":
    # All of it before Airflow is imported: it reads its settings then.
    HOME = Path(tempfile.mkdtemp(prefix="lakescope-airflow-"))
    (HOME / "dags").mkdir()
    shutil.copy(__file__, HOME / "dags" / "checked.py")
    SERVER = urlsplit(os.environ["LAKESCOPE_URL"])
    # The scheme goes into `schema`: without it the provider speaks https, whatever the host says.
    CONNECTION = {
        "conn_type": "databricks", "host": SERVER.hostname, "port": SERVER.port, "schema": SERVER.scheme,
        "password": os.environ["LAKESCOPE_TOKEN"],
    }
    os.environ |= {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
        "AIRFLOW__API_AUTH__JWT_SECRET": "of one process only",
        "AIRFLOW_CONN_DATABRICKS_DEFAULT": json.dumps(CONNECTION),
        "AIRFLOW_CONN_STRANGER": json.dumps({**CONNECTION, "password": "nobody's"}),
        # The loopback is reached without a proxy, whatever the machine has set.
        "NO_PROXY": "*",
    }

from airflow.providers.databricks.exceptions import DatabricksApiError  # noqa: E402
from airflow.providers.databricks.hooks.databricks import DatabricksHook  # noqa: E402
from airflow.providers.databricks.operators.databricks import (  # noqa: E402
    DatabricksCreateJobsOperator,
    DatabricksRunNowOperator,
    DatabricksSubmitRunOperator,
    DatabricksTaskOperator,
)
from airflow.providers.databricks.operators.databricks_workflow import DatabricksWorkflowTaskGroup  # noqa: E402
from airflow.providers.databricks.triggers.databricks import DatabricksExecutionTrigger  # noqa: E402
from airflow.providers.databricks.utils.databricks import normalise_json_content  # noqa: E402
from airflow.sdk import DAG  # noqa: E402
from airflow.sdk.exceptions import AirflowException  # noqa: E402

FOLDER = Path(os.environ["AIRFLOW_HOME"])
# What names of jobs begin with, for the hook deletes none: others are those of another time.
PREFIX = FOLDER.name
SCRIPTS = {
    "hello": "import sys\nprint('hello', *sys.argv[1:])\n",
    "fail": "print('before it')\nraise ValueError('kaboom-7319')\n",
    # Fails unless it is told to go.
    "told": "import sys\nif sys.argv[1] != 'go': raise RuntimeError('told to ' + sys.argv[1])\nprint('went')\n",
    # Fails the first time.
    "second": "import os, sys\nif not os.path.exists(sys.argv[1]):\n"
    "    open(sys.argv[1], 'w').close()\n    raise RuntimeError('not the first time')\nprint('now')\n",
    "sleep": "import sys, time\nprint('sleeping', flush=True)\ntime.sleep(float(sys.argv[1]))\n",
}
# Stands in for Spark, which the provider's shortest forms of a task ask for: they name a cluster.
SUBMIT = f'#!/bin/sh\nwhile [ "${{1#--}}" != "$1" ]; do shift 2; done\nexec "{sys.executable}" "$@"\n'
CLUSTER = {"spark_version": "15.4.x-scala2.12", "num_workers": 0, "spark_env_vars": {"PATH": f"{FOLDER}:/usr/bin:/bin"}}
ENVIRONMENTS = [{"environment_key": "default", "spec": {"client": "3"}}]
CHECKS = {}
# What Airflow told of failed attempts, by DAG and task.
ERRORS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def same(got, want, what):
    if got != want:
        raise AssertionError(f"{what}: {got!r}, not {want!r}")


def holds(text, word, what):
    if word not in str(text):
        raise AssertionError(f"{what}: {word!r} is not in {text!r}")


def raises(kind, function, word):
    try:
        function()
    except kind as error:
        return holds(error, word, "what is wrong")
    raise AssertionError(f"nothing was wrong, where {word!r} was to be")


def python(script, *parameters):
    return {"spark_python_task": {"python_file": f"file:{FOLDER}/{script}.py", "parameters": list(parameters)}}


def task(key, script, *parameters, after=(), **more):
    after = {"depends_on": [{"task_key": key} for key in after]} if after else {}
    return {"task_key": key, "environment_key": "default", **python(script, *parameters), **after, **more}


def ours(words):
    """A reference of ours, which Airflow's templates are to leave as it is."""
    return "{% raw %}{{" + words + "}}{% endraw %}"


def job(name, *tasks, task_id="create", **more):
    """The operator that makes or resets a job."""
    spec = {"name": f"{PREFIX} {name}", "tasks": list(tasks), "environments": ENVIRONMENTS, **more}
    return DatabricksCreateJobsOperator(task_id=task_id, json=spec)


def run_now(task_id, **more):
    return DatabricksRunNowOperator(task_id=task_id, polling_period_seconds=0.1, **more)


def heard(context):
    ti = context["ti"]
    ERRORS.setdefault((ti.dag_id, ti.task_id), []).append(str(context.get("exception")))


def dag(name, **more):
    told = {"on_failure_callback": heard, "on_retry_callback": heard, "retry_delay": timedelta(0)}
    return DAG(name, schedule=None, start_date=datetime(2026, 1, 1), default_args=told, **more)


# The DAGs ---------------------------------------------------------------------------------------

with dag("succeeds", params={"mode": "full"}) as SUCCEEDS:
    first_made = job("good", task("before", "fail"), tags={"team": "none"})
    # Resets it.
    made = job(
        "good",
        task("first", "hello", ours("job.parameters.day"), timeout_seconds=600),
        {"task_key": "full", "depends_on": [{"task_key": "first"}],
         "condition_task": {"left": ours("job.parameters.mode"), "op": "EQUAL_TO", "right": "full"}},
        {**task("only_full", "hello", "full"), "depends_on": [{"task_key": "full", "outcome": "true"}]},
        {**task("otherwise", "hello", "partial"), "depends_on": [{"task_key": "full", "outcome": "false"}]},
        parameters=[{"name": "day", "default": "none"}, {"name": "mode", "default": "part"}],
        max_concurrent_runs=3, tags={"team": "data"}, timeout_seconds=3_600, task_id="reset",
    )
    by_id = run_now("by_id", job_id=made.output, job_parameters={"day": "{{ ds }}"})
    by_name = run_now("by_name", job_name=f"{PREFIX} good")
    deferred = run_now("deferred", job_id=made.output, job_parameters={"day": "later"}, deferrable=True)
    submitted = DatabricksSubmitRunOperator(
        task_id="submitted", run_name=f"{PREFIX} once", environments=ENVIRONMENTS, polling_period_seconds=0.1,
        tasks=[task("one", "hello", "once"), task("two", "sleep", "0.3", after=["one"])],
    )
    submitted_later = DatabricksSubmitRunOperator(
        task_id="submitted_later", deferrable=True, polling_period_seconds=0.1,
        tasks=[task("one", "sleep", "0.5")], environments=ENVIRONMENTS,
    )
    alone = DatabricksSubmitRunOperator(
        task_id="alone", new_cluster=CLUSTER, polling_period_seconds=0.1, **python("hello", "alone"),
    )
    first_made >> made >> by_id >> by_name >> deferred >> submitted >> submitted_later >> alone

with dag("fails") as FAILS:
    made = job("bad", task("good", "hello"), task("bad", "fail"), task("after", "hello", after=["bad"]))
    for how in [{"task_id": "waits"}, {"task_id": "defers", "deferrable": True}]:
        made >> run_now(job_id=made.output, **how)
    submit = {"tasks": [task("bad", "fail")], "environments": ENVIRONMENTS, "polling_period_seconds": 0.1}
    DatabricksSubmitRunOperator(task_id="submits", **submit)

with dag("repairs") as REPAIRS:
    # Attempts are told apart by files: the same parameters are sent again.
    made = job("repaired", task("good", "hello"), task("second", "second", ours("job.parameters.file")),
               task("after", "hello", after=["second"]), parameters=[{"name": "file", "default": ""}])
    repair = {"job_id": made.output, "repair_run": True}
    defers = run_now("defers", deferrable=True, job_parameters={"file": f"{FOLDER}/deferred"}, **repair)
    # Without deferring the provider fails the attempt even if the repair went well; the next attempt
    # takes up the run that it started.
    waits = run_now("waits", retries=1, job_parameters={"file": f"{FOLDER}/waited"}, **repair)
    made >> defers >> waits

with dag("repairs_with_new_settings") as RESETS:
    made = job("told", task("told", "told", "stay"))
    settings = {"tasks": [task("told", "told", "go")]}

    def repaired_for(task_id, reason, **more):
        return run_now(task_id, job_id=made.output, deferrable=True, repair_run=True,
                       databricks_repair_reason_new_settings={reason: settings}, **more)

    made >> repaired_for("other", "another reason") >> repaired_for("go", "told to stay", trigger_rule="all_done")

with dag("cancels") as CANCELS:
    made = job("slow", task("slow", "sleep", ours("job.parameters.seconds")),
               parameters=[{"name": "seconds", "default": "60"}], max_concurrent_runs=1, queue={"enabled": True})
    started = run_now("started", job_id=made.output, wait_for_termination=False)
    instead = run_now("instead", job_id=made.output, job_parameters={"seconds": "0"}, cancel_previous_runs=True)
    killed = run_now("killed", job_id=made.output, execution_timeout=timedelta(seconds=2))
    made >> started >> instead >> killed

with dag("workflow") as WORKFLOW:
    with DatabricksWorkflowTaskGroup(group_id="group", databricks_conn_id="databricks_default",
                                     extra_job_params={"environments": ENVIRONMENTS}) as group:
        def member(task_id, script, *parameters, **more):
            config = {"environment_key": "default", **python(script, *parameters)}
            return DatabricksTaskOperator(task_id=task_id, databricks_task_key=task_id, task_config=config,
                                          polling_period_seconds=0.2, **more)

        one = member("one", "sleep", "1", deferrable=True)
        again = member("again", "second", f"{FOLDER}/member", max_retries=1, deferrable=True)
        bad = member("bad", "fail")
        last = member("last", "hello", "last", trigger_rule="all_done")
        one >> [again, bad] >> last
    # A task by itself is a one-time run.
    alone = {"new_cluster": CLUSTER, "polling_period_seconds": 0.1}
    DatabricksTaskOperator(task_id="alone", task_config=python("hello", "alone"), **alone)
    DatabricksTaskOperator(task_id="retried", task_config=python("second", f"{FOLDER}/alone"), max_retries=1, **alone)

# The checks -------------------------------------------------------------------------------------


class Ran:
    """A DAG that Airflow has run."""

    def __init__(self, dag, state):
        self.run = dag.test()
        self.tasks = {ti.task_id: ti for ti in self.run.get_task_instances()}
        states = {name: str(ti.state) for name, ti in self.tasks.items()}
        why = [errors for (dag_id, _), errors in ERRORS.items() if dag_id == dag.dag_id]
        same(str(self.run.state), state, f"the DAG's state, of {states} {why}")

    def states(self, **wanted):
        same({name: str(self.tasks[name].state) for name in wanted}, wanted, "states of the tasks")

    def told(self, task_id, key):
        value = self.tasks[task_id].xcom_pull(task_ids=task_id, key=key)
        if value is None:
            raise AssertionError(f"{task_id} told no {key}")
        return value

    def error(self, task_id):
        return ERRORS.get((self.run.dag_id, task_id), ["no error"])[-1]


def logs(run_id):
    """What each task of a run printed, the last attempt of each."""
    tasks = sorted(hook.get_run_tasks(run_id), key=lambda task: task["start_time"])
    return {task["task_key"]: hook.get_run_output(task["run_id"]).get("logs", "") for task in tasks
            if task["state"].get("result_state") in ("SUCCESS", "FAILED")}


def ended(run_id, result):
    end = time.monotonic() + 20
    while not hook.get_run_state(run_id).is_terminal:
        if time.monotonic() > end:
            raise AssertionError(f"run {run_id} goes on: {hook.get_run_state_str(run_id)}")
        time.sleep(0.1)
    same(hook.get_run_state_result(run_id), result, f"result of run {run_id}")


@check
def connection():
    same(hook.test_connection(), (True, "Connection successfully tested"), "test of the connection")
    good, why = DatabricksHook("stranger").test_connection()
    same(good, False, f"test with a wrong token ({why})")


@check
def succeeds():
    ran = Ran(SUCCEEDS, "success")
    job_id = ran.told("create", "return_value")
    same(ran.told("reset", "return_value"), job_id, "the job that is reset")
    for task_id in ("by_id", "by_name", "deferred"):
        run_id = ran.told(task_id, "run_id")
        same(hook.get_job_id(run_id), job_id, f"job of {task_id}")
        holds(ran.told(task_id, "run_page_url"), f"/runs/{run_id}", "page of the run")
        ended(run_id, "SUCCESS")
    same(ran.told("deferred", "job_id"), job_id, "job that the deferred task told")
    said = logs(ran.told("by_id", "run_id"))
    holds(said["first"], f"hello {ran.run.logical_date:%Y-%m-%d}", "parameter of the run")
    same(sorted(said), ["first", "full", "otherwise"], "tasks that ran")
    # Parameters of a DAG become a run's if it gives none.
    said = logs(ran.told("by_name", "run_id"))
    holds(said["first"], "hello none", "default of the parameter")
    holds(said["only_full"], "hello full", "parameter of the DAG")
    holds(logs(ran.told("submitted", "run_id"))["one"], "hello once", "one-time run")
    ended(ran.told("submitted_later", "run_id"), "SUCCESS")
    holds([*logs(ran.told("alone", "run_id")).values()], "hello alone", "one-time run of one task")


@check
def fails():
    ran = Ran(FAILS, "failed")
    ran.states(create="success", waits="failed", defers="failed", submits="failed")
    for task_id in ("waits", "defers", "submits"):
        holds(ran.error(task_id), "kaboom-7319", f"error of {task_id}")
        ended(ran.told(task_id, "run_id"), "FAILED")
    holds(ran.error("waits"), "'task_key': 'bad'", "the failed task")


@check
def repairs():
    ran = Ran(REPAIRS, "success")
    for task_id in ("defers", "waits"):
        run_id = ran.told(task_id, "run_id")
        ended(run_id, "SUCCESS")
        holds(logs(run_id)["second"], "now", "the second attempt")
        tasks = [task["task_key"] for task in hook.get_run_tasks(run_id)]
        same([tasks.count(key) for key in ("good", "second", "after")], [1, 2, 2], "attempts of the tasks")
        if not hook.get_latest_repair_id(run_id):
            raise AssertionError("no repair is told")
    same(ran.tasks["defers"].try_number, 1, "attempts of the deferred task")
    same(ran.tasks["waits"].try_number, 2, "attempts of the waiting task")
    holds(ran.error("waits"), "not the first time", "error of the first attempt")


@check
def repairs_with_new_settings():
    ran = Ran(RESETS, "success")
    ran.states(other="failed", go="success")
    same(len(hook.get_run_tasks(ran.told("other", "run_id"))), 1, "attempts without a reason to repair")
    run_id = ran.told("go", "run_id")
    ended(run_id, "SUCCESS")
    same([task["state"]["result_state"] for task in hook.get_run_tasks(run_id)], ["FAILED", "SUCCESS"], "attempts")
    changed = hook.list_jobs(job_name=f"{PREFIX} told", expand_tasks=True)[0]["settings"]["tasks"]
    same([task["spark_python_task"]["parameters"] for task in changed], [["go"]], "parameters of the changed job")


@check
def cancels():
    ran = Ran(CANCELS, "failed")
    ran.states(started="success", instead="success", killed="failed")
    ended(ran.told("started", "run_id"), "CANCELED")
    ended(ran.told("instead", "run_id"), "SUCCESS")
    run_id = ran.told("killed", "run_id")
    ended(run_id, "CANCELED")
    # What Airflow does when somebody stops a deferred task.
    run_id = hook.run_now({"job_id": hook.get_job_id(run_id)})
    asyncio.run(DatabricksExecutionTrigger(run_id, "databricks_default").on_kill())
    ended(run_id, "CANCELED")


@check
def workflow():
    # What ends it went well.
    ran = Ran(WORKFLOW, "success")
    ran.states(**{"group.launch": "success", "group.one": "success", "group.again": "success", "group.bad": "failed",
                  "group.last": "success", "alone": "success", "retried": "success"})
    run_id = ran.told("group.launch", "return_value")["run_id"]
    holds(ran.error("group.bad"), "kaboom-7319", "error of the failed member")
    holds(logs(run_id)["last"], "hello last", "the member after it")
    keys = [task["task_key"] for task in hook.get_run_tasks(run_id)]
    same({key: keys.count(key) for key in keys}, {"one": 1, "again": 2, "bad": 1, "last": 1}, "attempts of the members")
    same(len(hook.get_run_tasks(ran.told("retried", "run_id"))), 2, "attempts of a task by itself")
    same(hook.find_job_id_by_name("workflow.group"), hook.get_job_id(run_id), "job of the group")


@check
def numbers_sent_as_text():
    """As the operators send all of them; who reads the job is still to get numbers."""
    sent = normalise_json_content({
        "name": f"{PREFIX} numbers", "environments": ENVIRONMENTS, "max_concurrent_runs": 3, "timeout_seconds": 3_600,
        "tasks": [task("one", "hello", timeout_seconds=600, max_retries=2)],
    })
    hook.create_job(sent)
    settings = hook.list_jobs(job_name=sent["name"], expand_tasks=True)[0]["settings"]
    same((settings["max_concurrent_runs"], settings["timeout_seconds"]), (3, 3_600), "numbers of the job")
    same([settings["tasks"][0][name] for name in ("timeout_seconds", "max_retries")], [600, 2], "numbers of the task")


@check
def calls_of_the_hook():
    told = {"environments": ENVIRONMENTS, "parameters": [{"name": "word", "default": "stay"}],
            "tasks": [task("told", "told", "{{job.parameters.word}}"), task("good", "hello")]}
    x, y = f"{PREFIX} x", f"{PREFIX} y"
    named = [hook.create_job({"name": name, **told}) for name in (x, y, y)]
    listed = [job["job_id"] for job in hook.list_jobs(limit=1)]
    same([job for job in listed if job in named], named[::-1], "jobs in pages of one")
    same(hook.find_job_id_by_name(x), named[0], "job by its name")
    same(hook.find_job_id_by_name(f"{PREFIX} nobody"), None, "job of no such name")
    raises(AirflowException, lambda: hook.find_job_id_by_name(y), "more than one job")
    hook.update_job(named[0], {"tags": {"team": "data"}})
    same(hook.list_jobs(job_name=x)[0]["settings"]["tags"], {"team": "data"}, "tags of the changed job")

    run_id = hook.run_now({"job_id": named[0]})
    ended(run_id, "FAILED")
    same(hook.get_run_state_lifecycle(run_id), "TERMINATED", "life cycle")
    holds(hook.get_run_state_message(run_id), "told to stay", "message of the run")
    holds(hook.get_run_state_str(run_id), "Result: FAILED", "state in words")
    told = next(task for task in hook.get_run_tasks(run_id) if task["task_key"] == "told")
    output = hook.get_run_output(told["run_id"])
    holds(output["error"], "told to stay", "error of the task")
    holds(output["error_trace"], "Traceback", "trace of the task")
    same(hook.get_latest_repair_id(run_id), None, "latest repair of a run without one")
    first = hook.repair_run({"run_id": run_id, "rerun_tasks": ["told"]})
    ended(run_id, "FAILED")
    same(hook.get_latest_repair_id(run_id), first, "latest repair")
    again = {"run_id": run_id, "rerun_all_failed_tasks": True, "job_parameters": {"word": "go"}}
    raises(DatabricksApiError, lambda: hook.repair_run(again), "latest_repair_id")
    second = hook.repair_run({**again, "latest_repair_id": first})
    ended(run_id, "SUCCESS")
    same(hook.get_latest_repair_id(run_id), second, "latest repair after the second")
    hook.delete_run(run_id)
    raises(DatabricksApiError, lambda: hook.get_run(run_id), "does not exist")

    slow = {"name": y, "environments": ENVIRONMENTS, "tasks": [task("slow", "sleep", "60")]}
    hook.reset_job(str(named[1]), slow)
    run_id = hook.run_now({"job_id": named[1]})
    hook.cancel_all_runs(named[1])
    ended(run_id, "CANCELED")

    equal = {"left": "1", "op": "EQUAL_TO", "right": "1"}
    many = [{"task_key": f"t{number}", "condition_task": equal} for number in range(120)]
    run_id = hook.submit_run({"run_name": f"{PREFIX} many", "tasks": many})
    ended(run_id, "SUCCESS")
    same(len({task["task_key"] for task in hook.get_run_tasks(run_id)}), 120, "tasks over the pages")
    same(len(asyncio.run(in_a_trigger(run_id))["tasks"]), 120, "tasks over the pages, in a trigger")


async def in_a_trigger(run_id):
    async with hook:
        return await hook.a_get_run(run_id)


def main():
    global hook
    out = os.fdopen(os.dup(1), "w", buffering=1)
    # Only the checks' own lines on standard output.
    os.dup2(2, 1)
    for name, text in SCRIPTS.items():
        (FOLDER / f"{name}.py").write_text(text)
    (FOLDER / "spark-submit").write_text(SUBMIT)
    (FOLDER / "spark-submit").chmod(0o755)
    from airflow.utils.db import initdb
    initdb()
    hook = DatabricksHook()
    failed = 0
    for name, function in CHECKS.items():
        if not any(word in name for word in sys.argv[1:] or [""]):
            continue
        began = time.monotonic()
        try:
            function()
            print(f"ok airflow {name} ({time.monotonic() - began:.1f} s)", file=out)
        except Exception as error:
            failed += 1
            traceback.print_exc()
            print(f"FAIL airflow {name}: {type(error).__name__}: {error}", file=out)
    shutil.rmtree(FOLDER, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
