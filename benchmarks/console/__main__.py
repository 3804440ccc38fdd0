"""The server of the console under load: `python -m benchmarks.console [--jobs 200] [--clients 50] [--seconds 1200]`.

Jobs are rows in the database with journals, as runs leave them, and no processes: what is measured is the server.
Clients ask for the list of jobs, for a job with its metrics, and for the graph of one with many operators, beside each
other, with a pause between. Latencies are of whole answers over loopback; memory is what the server has in RAM.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec
from arroyo_console.folders import Folders
from arroyo_console.journal import EPOCHS, GRAPH, LATEST
from arroyo_console.store import Store, open_store
from arroyo_console.store.store import sqlite_url
from arroyo_console.values import Language, State

PORT = 5879
EPOCHS_KEPT = 200


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__)
    parser.add_argument("--jobs", type=int, default=200, help="in the list (default: %(default)s)")
    parser.add_argument("--operators", type=int, default=300, help="of the large graph (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=50, help="that ask at once (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they ask (default: %(default)s)")
    parser.add_argument(
        "--pause", type=float, default=1.0, help="of a client between two requests (default: %(default)s)"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="arroyo-console-bench-") as folder:
        data = Path(folder) / "data"
        jobs = fill(data, args.jobs, args.operators)
        server = start(data)
        try:
            asyncio.run(measure(jobs, args, server.pid))
        finally:
            server.terminate()
            server.wait()


def fill(data: Path, count: int, operators: int) -> list[str]:
    """The ids of the jobs; the first has the large graph."""
    folders = Folders(data)
    folders.make()
    store = open_store(sqlite_url(data / "console.db"))
    jobs = [add_job(store, folders, number, operators if number == 0 else 5) for number in range(count)]
    store.close()
    return jobs


def add_job(store: Store, folders: Folders, number: int, operators: int) -> str:
    text = chain_text(f"job{number}", operators)
    made = store.add_pipeline(f"job{number}", Language.YAML, text, parallelism=None, now_us=number)
    run_id = store.add_run(made.job.id, 1, version=1, host="bench", boot_id="", is_restart=False, now_us=number)
    store.change_run(run_id, ended_us=number + 1, exit_code=0, reason="it was asked to stop")
    store.change_job(made.job.id, state=State.STOPPED, now_us=number)
    folder = folders.run(made.job.id, 1)
    folder.mkdir(parents=True)
    write_journal(folder, operators)
    return made.job.id


def chain_text(name: str, operators: int) -> str:
    nodes = ["  - {id: n0, operator: nexmark.source, config: {table: bid}}"]
    nodes += [
        f"  - {{id: n{number}, operator: std.filter, inputs: [n{number - 1}], config: {{predicate: 'price > 1'}}}}"
        for number in range(1, operators - 1)
    ]
    nodes.append(f"  - {{id: n{operators - 1}, operator: std.blackhole, inputs: [n{operators - 2}]}}")
    return "\n".join([f"name: {name}", "nodes:", *nodes])


def write_journal(folder: Path, operators: int) -> None:
    names = [f"n{number}" for number in range(operators)]
    numbers = {"rows_in": 1_000, "rows_out": 1_000, "busy_share": 0.1, "state_bytes": 0, "warnings": [], "counters": {}}
    line = {"at_us": 1, "epoch": 1, "duration_s": 1.0, "source_rows": 1_000, "slowest": ["n1", 0.1]}
    (folder / EPOCHS).write_bytes(
        b"".join(msgspec.json.encode(line | {"epoch": n}) + b"\n" for n in range(1, EPOCHS_KEPT))
    )
    subtasks = {name: [(subtask, 500, 500, 1, 1, 1, 0) for subtask in range(2)] for name in names}
    (folder / LATEST).write_bytes(
        msgspec.json.encode(line | {"operators": dict.fromkeys(names, numbers), "subtasks": subtasks})
    )
    nodes = [
        {
            "id": name,
            "operator": "std.filter",
            "parallelism": 2,
            "is_source": name == "n0",
            "is_sink": name == names[-1],
        }
        for name in names
    ]
    chains = [{"id": 0, "nodes": names, "parallelism": 2, "wave": 0}]
    (folder / GRAPH).write_text(json.dumps({"name": "bench", "nodes": nodes, "edges": [], "chains": chains}))


def start(data: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "arroyo_console.planning.command", "serve", "--no-pages", "--in-process"]
    server = subprocess.Popen([*command, "--data", str(data), "--port", str(PORT)], stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            if httpx.get(f"http://127.0.0.1:{PORT}/v1/ping", timeout=5).is_success:
                return server
        except httpx.TransportError:
            time.sleep(0.2)
    raise SystemExit("the server does not answer")


async def measure(jobs: list[str], args: argparse.Namespace, pid: int) -> None:
    paths: dict[str, Callable[[], str]] = {
        "list of jobs": lambda: "/v1/jobs?limit=200",
        "a job": lambda: f"/v1/jobs/{random.choice(jobs)}",
        "metrics": lambda: f"/v1/jobs/{random.choice(jobs)}/metrics",
        f"metrics of {args.operators} operators": lambda: f"/v1/jobs/{jobs[0]}/metrics",
        f"graph of {args.operators} operators": lambda: f"/v1/jobs/{jobs[0]}/graph",
    }
    times: dict[str, list[float]] = defaultdict(list)
    # The server ends connections that were idle for five seconds: the client must be first.
    limits = httpx.Limits(max_connections=args.clients, keepalive_expiry=2)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{PORT}", timeout=120, limits=limits) as client:
        # The plan of the large text is made once.
        await client.get(paths[f"graph of {args.operators} operators"]())
        first = rss_mib(pid)
        end_s = time.monotonic() + args.seconds

        async def ask() -> None:
            await asyncio.sleep(random.random() * args.pause)
            while time.monotonic() < end_s:
                name = random.choice(list(paths))
                begun_s = time.perf_counter()
                (await client.get(paths[name]())).raise_for_status()
                times[name].append(time.perf_counter() - begun_s)
                await asyncio.sleep(args.pause)

        await asyncio.gather(*(ask() for _ in range(args.clients)))
        last = rss_mib(pid)
    print(f"{args.clients} clients, {args.jobs} jobs, {args.seconds:g} s, load {os.getloadavg()[0]:.1f}")
    for name, found in times.items():
        found.sort()
        p95 = found[int(len(found) * 0.95) - 1] if len(found) > 1 else found[0]
        middle = statistics.median(found)
        print(f"{name:28} {len(found):6} answers  median {middle * 1e3:7.0f} ms  p95 {p95 * 1e3:7.0f} ms")
    print(f"memory of the server: {first:.0f} MiB at first, {last:.0f} MiB at the end")


def rss_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
