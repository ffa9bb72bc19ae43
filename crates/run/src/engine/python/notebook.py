"""Runs a notebook by a kernel, cell by cell: PATH

What it prints is the output of the task; `notebook.ipynb` beside this file holds the cells with their
outputs, after each of them.
"""

import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HERE = Path(__file__).parent
# Packages of this notebook alone, before all others.
PACKAGES = HERE / "packages"
FIRST_LINE = "# Databricks notebook source"
BETWEEN_CELLS = re.compile(r"^# COMMAND -+\s*$", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ENDINGS = ("", ".py", ".ipynb")
# Magics of notebooks whose work is done here.
PLAIN = {"python", "md", "md-sandbox", "run"}
OTHER_LANGUAGES = {"scala", "r"}


def source_of(path):
    for ending in ENDINGS:
        file = Path(f"{path}{ending}")
        if file.is_file():
            return file
    sys.exit(f"there is no notebook {path}; is it on the machine that runs the server?")


def read(file):
    if file.suffix == ".ipynb":
        return nbformat.read(file, as_version=4).cells
    text = file.read_text(encoding="utf-8")
    if text.startswith(FIRST_LINE):
        text = text[len(FIRST_LINE) :]
    parts = (part.strip("\n") for part in BETWEEN_CELLS.split(text))
    return [new_code_cell(without_marks(part)) for part in parts if part.strip()]


def without_marks(part):
    """A cell in another language stands in comments."""
    lines = part.splitlines()
    marked = [line for line in lines if line.startswith("# MAGIC")]
    if not marked:
        return part
    return "\n".join(line.removeprefix("# MAGIC").removeprefix(" ") for line in marked)


def cells_of(file, above=()):
    """Cells as the kernel reads them; those of a notebook that is included stand in its place."""
    if file in above:
        sys.exit(f"{file} includes itself by %run")
    for cell in read(file):
        if cell.cell_type != "code":
            yield cell
            continue
        text = cell.source.strip()
        magic = re.match(r"%([\w-]+)[ \t]*(.*)", text)
        name = magic.group(1) if magic else None
        if name == "run":
            other = (file.parent / magic.group(2).split()[0].strip("\"'")).resolve()
            yield from cells_of(source_of(other), (*above, file))
        elif name in ("md", "md-sandbox"):
            yield new_markdown_cell(text.partition(name)[2].lstrip())
        elif name in OTHER_LANGUAGES:
            sys.exit(f"a cell of {file} is written in {name}, which lakescope does not run; use Python or SQL")
        else:
            if name == "python":
                cell.source = text.partition("python")[2].lstrip()
            elif name in ("sql", "sh") and "\n" in text:
                cell.source = "%" + text
            yield cell


class Client(NotebookClient):
    """Repeats what cells print, when they print it."""

    def process_message(self, msg, cell, cell_index):
        content, kind = msg["content"], msg["msg_type"]
        if kind == "stream":
            stream = sys.stderr if content["name"] == "stderr" else sys.stdout
            print(content["text"], end="", file=stream, flush=True)
        elif kind in ("execute_result", "display_data") and "text/plain" in content["data"]:
            print(content["data"]["text/plain"], flush=True)
        return super().process_message(msg, cell, cell_index)


def error_of(cell):
    return next((output for output in cell.outputs if output.output_type == "error"), None)


def tell(error):
    print("Traceback (most recent call last):", file=sys.stderr)
    for line in COLOUR.sub("", "\n".join(error.traceback[:-1])).splitlines():
        print(f"  {line}", file=sys.stderr)
    print(f"{error.ename}: {error.evalue}", file=sys.stderr)


def environment():
    paths = [str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    # What a cell installs is for this notebook alone.
    own = {"PYTHONPATH": os.pathsep.join(paths), "PIP_TARGET": str(PACKAGES), "PIP_UPGRADE": "1"}
    return {**os.environ, **own, "LAKESCOPE_NOTEBOOK_FOLDER": str(HERE)}


def save(notebook):
    draft = HERE / "notebook.ipynb.tmp"
    nbformat.write(notebook, draft)
    draft.replace(HERE / "notebook.ipynb")


def start(client, path):
    client.create_kernel_manager()
    # Sockets of this user alone: whoever speaks to a kernel runs code.
    client.km.transport = "ipc"
    client.start_new_kernel(env=environment(), cwd=str(path.parent))
    client.start_new_kernel_client()
    prepare(client)


def prepare(client):
    cell = new_code_cell((HERE / "dbutils.py").read_text(encoding="utf-8"))
    cell.metadata["transient"] = True
    client.nb.cells.append(cell)
    client.execute_cell(cell, len(client.nb.cells) - 1, store_history=False)
    client.nb.cells.pop()


def run(path):
    notebook = new_notebook(cells=list(cells_of(path)))
    client = Client(notebook, timeout=None, kernel_name="python3", allow_errors=False)
    start(client, path)
    try:
        for at, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            try:
                client.execute_cell(cell, at)
            except CellExecutionError:
                pass
            save(notebook)
            error = error_of(cell)
            if error is None:
                continue
            if error.ename not in ("NotebookExit", "RestartPython"):
                tell(error)
                return 1
            cell.outputs.remove(error)
            save(notebook)
            if error.ename == "NotebookExit":
                return 0
            client._cleanup_kernel()
            start(client, path)
        return 0
    finally:
        client._cleanup_kernel()
        render(notebook)


def render(notebook):
    save(notebook)
    try:
        from nbconvert import HTMLExporter

        html, _ = HTMLExporter().from_notebook_node(notebook)
        (HERE / "notebook.html").write_text(html, encoding="utf-8")
    except Exception as error:  # What the cells did stands, with or without a page of it.
        print(f"the page of the notebook cannot be made: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(run(source_of(sys.argv[1]).resolve()))
