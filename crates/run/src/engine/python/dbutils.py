"""What notebooks find in their namespace: `dbutils`, `spark`, `display`, and magics of other languages.

Run in the kernel before the first cell, and again after a restart of Python.
"""

import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

_FOLDER = Path(os.environ["LAKESCOPE_NOTEBOOK_FOLDER"])
_MOST_BYTES = 48 << 10


class NotebookExit(Exception):
    """The notebook is done; not an error."""


class RestartPython(Exception):
    """The interpreter is to be replaced; not an error."""


class _Widgets:
    """Parameters: those that the task was given win over defaults."""

    def __init__(self):
        self._given = json.loads(os.environ.get("LAKESCOPE_NOTEBOOK_PARAMETERS", "{}"))
        self._defaults = {}

    def text(self, name, defaultValue="", label=None):
        self._defaults[name] = str(defaultValue)

    def dropdown(self, name, defaultValue, choices, label=None):
        self.text(name, defaultValue)

    combobox = dropdown

    def multiselect(self, name, defaultValue, choices, label=None):
        self.text(name, defaultValue)

    def get(self, name):
        try:
            return self.getAll()[name]
        except KeyError:
            raise ValueError(
                f"no widget is named {name!r}; add it to base_parameters, or define it by dbutils.widgets.text"
            ) from None

    getArgument = get

    def getAll(self):
        return {**self._defaults, **self._given}

    def remove(self, name):
        self._defaults.pop(name, None)

    def removeAll(self):
        self._defaults.clear()


class _TaskValues:
    """Small values that tasks hand on."""

    def set(self, key, value):
        line = json.dumps({key: value}, allow_nan=False)
        if len(json.dumps(value)) > _MOST_BYTES:
            raise ValueError(f"the value of {key!r} is larger than 48 KiB; write it to a table or a file instead")
        with open(os.environ["LAKESCOPE_TASK_VALUES"], "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def get(self, taskKey, key, default=None, debugValue=None):
        known = json.loads((_FOLDER / "values-of-others.json").read_text(encoding="utf-8"))
        try:
            return known[taskKey][key]
        except KeyError:
            if default is not None:
                return default
            raise ValueError(f"task {taskKey!r} has set no value {key!r}, and no default is given") from None


class _Jobs:
    taskValues = _TaskValues()


class _Library:
    def restartPython(self):
        raise RestartPython()


class _Notebook:
    def exit(self, value=""):
        (_FOLDER / "result").write_text(str(value), encoding="utf-8")
        raise NotebookExit(str(value))

    def run(self, path, timeout_seconds=0, arguments=None):
        """Runs another notebook in an interpreter of its own, and gives what it exits with."""
        folder = _FOLDER / f"notebook-{len(list(_FOLDER.glob('notebook-*')))}"
        folder.mkdir()
        for name in ("notebook.py", "dbutils.py", "values-of-others.json"):
            (folder / name).write_bytes((_FOLDER / name).read_bytes())
        given = json.dumps({name: str(value) for name, value in (arguments or {}).items()})
        environment = {**os.environ, "LAKESCOPE_NOTEBOOK_PARAMETERS": given}
        command = [sys.executable, str(folder / "notebook.py"), str(Path(path))]
        subprocess.run(command, env=environment, check=True, timeout=timeout_seconds or None)
        result = folder / "result"
        return result.read_text(encoding="utf-8") if result.exists() else ""


FileInfo = namedtuple("FileInfo", ["path", "name", "size", "modificationTime"])


class _Fs:
    """Files of this machine, by path or `file:` URL."""

    def _path(self, path):
        return Path(path.removeprefix("file://").removeprefix("file:"))

    def ls(self, path):
        def info(entry):
            # Folders end with a slash, as everywhere else where this is called.
            end, about = "/" if entry.is_dir() else "", entry.stat()
            size = 0 if end else about.st_size
            return FileInfo(f"file:{entry}{end}", entry.name + end, size, int(about.st_mtime * 1000))

        return [info(entry) for entry in sorted(self._path(path).iterdir())]

    def head(self, path, maxBytes=65536):
        with open(self._path(path), "rb") as file:
            return file.read(maxBytes).decode("utf-8", "replace")

    def mkdirs(self, path):
        self._path(path).mkdir(parents=True, exist_ok=True)
        return True

    def put(self, path, contents, overwrite=False):
        with open(self._path(path), "w" if overwrite else "x", encoding="utf-8") as file:
            file.write(contents)
        return True


class _Dbutils:
    widgets = _Widgets()
    jobs = _Jobs()
    library = _Library()
    notebook = _Notebook()
    fs = _Fs()


class _Later:
    """A Spark session that is started when it is first used: many notebooks need none."""

    def __init__(self, start):
        self.__dict__["_start"] = start

    def __getattr__(self, name):
        return getattr(self._start(), name)

    def __repr__(self):
        return repr(self._start())


def _session():
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def display(value=None, *more, **options):
    """Shows a value; of a table of Spark its first rows."""
    from IPython.display import display as show

    if hasattr(value, "show") and hasattr(value, "schema"):
        value.show(1000, truncate=False)
    else:
        show(value, *more, **options)


def _sql(line, cell=None):
    display(_session().sql(cell or line))


def _sh(line, cell=None):
    subprocess.run(["/bin/sh", "-c", cell or line], check=True)


dbutils = _Dbutils()
spark = _Later(_session)
sc = _Later(lambda: _session().sparkContext)
getArgument = dbutils.widgets.get

for _name, _magic in (("sql", _sql), ("sh", _sh)):
    get_ipython().register_magic_function(_magic, "line_cell", _name)
