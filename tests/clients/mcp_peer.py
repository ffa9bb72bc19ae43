"""Two real clients: the MCP server that users of Spark run (over our REST API), tool by tool, and
the official MCP SDK on our own tools, over HTTP and over standard input and output.

Arguments: the peer's program, our program, our address, a folder of logs, a data directory.
Prints `ok NAME` or `not ok NAME: WHY` a check.
"""

import asyncio
import json
import sys
import tempfile
import urllib.request
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

PEER, OURS, ADDRESS, LOGS, DATA = sys.argv[1:6]
# A history server has no threads to dump: Spark's own refuses, too.
REFUSED = {"get_executor_thread_dump"}


def report(name, why=None):
    print(f"ok {name}" if why is None else f"not ok {name}: {why}", flush=True)


def rest(path):
    with urllib.request.urlopen(ADDRESS + path) as answer:
        return json.load(answer)


def text(result):
    return "\n".join(block.text for block in result.content if getattr(block, "text", None))


def arguments(tool, app, other, stage, other_stage, sql):
    """What a tool asks for, by the names of its parameters; of ours the query, too."""
    known = {
        "app_id": app, "app_id1": app, "app_id2": other, "stage_id": stage, "stage_id1": stage, "stage_id2": other_stage,
        "execution_id": sql, "executor_id": "1", "application": app, "stage": stage, "sql": sql, "base": other,
        "new": app, "text": "java.lang.OutOfMemoryError: Java heap space",
    }
    wanted = [*(tool.inputSchema.get("required") or []), *({"sql"} & set(tool.inputSchema["properties"]))]
    return {name: known[name] for name in wanted}


async def tools(session, prefix, facts, refused=frozenset()):
    """Calls each tool; gives the answers by name."""
    answers = {}
    for tool in (await session.list_tools()).tools:
        result = await session.call_tool(tool.name, arguments(tool, *facts))
        answers[tool.name] = text(result)
        wrong = bool(result.isError) != (tool.name in refused)
        report(f"{prefix} {tool.name}", answers[tool.name][:300] or "no error" if wrong else None)
    return answers


async def peer(facts):
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(json.dumps({"servers": {"lakescope": {"default": True, "url": ADDRESS}}}))
        env = {"SHS_MCP_TRANSPORT": "stdio", "PATH": "/usr/bin:/bin", "HOME": folder}
        server = StdioServerParameters(command=PEER, args=["--config", str(config)], env=env)
        async with stdio_client(server) as (reads, writes), ClientSession(reads, writes) as session:
            await session.initialize()
            answers = await tools(session, "peer", facts, REFUSED)
    right = "shop_daily" in answers.get("list_applications", "")
    report("peer finds the application", None if right else answers.get("list_applications", "")[:300])


async def ours(session, prefix, facts):
    answers = await tools(session, prefix, facts)
    for tool, word in [("list_applications", "shop_daily"), ("diagnosis", "SKEW_KEY"), ("stage", "Shuffle read"),
                       ("plan", "Join"), ("task_distribution", "quantiles"), ("read_text", "memory")]:
        report(f"{prefix} {tool} says {word}", None if word in answers.get(tool, "") else answers.get(tool, "")[:300])
    for tool, answer in answers.items():
        report(f"{prefix} {tool} fits a model", None if len(answer) < 40_000 else f"{len(answer)} characters")
    wrong = await session.call_tool("diagnosis", {"application": "nobody"})
    report(f"{prefix} tells what is wrong", None if wrong.isError and "nobody" in text(wrong) else text(wrong))


async def main():
    apps = {app["name"]: app["id"] for app in rest("/api/v1/applications")}
    other = apps["lab spill bad"]
    other_stage = rest(f"/api/v1/applications/{other}/stages?status=complete")[0]["stageId"]
    facts = (apps["shop_daily"], other, 8, other_stage, 0)
    await peer(facts)
    async with streamablehttp_client(ADDRESS + "/mcp") as (reads, writes, _), ClientSession(reads, writes) as session:
        await session.initialize()
        await ours(session, "http", facts)
    server = StdioServerParameters(command=OURS, args=["mcp", LOGS, "--data-dir", DATA])
    async with stdio_client(server) as (reads, writes), ClientSession(reads, writes) as session:
        await session.initialize()
        # The list is complete once the first look at the folder is over.
        for _ in range(200):
            await asyncio.sleep(0.05)
            listed = await session.call_tool("list_applications", {})
            if json.loads(text(listed))["ready"]:
                break
        await ours(session, "stdio", facts)


asyncio.run(main())
