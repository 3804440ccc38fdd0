"""The pages over values, as a process: `python -m support.fake_server PORT [EVIL]`, in the folder above."""

from __future__ import annotations

import sys

import uvicorn
from arroyo_console.pages import mount
from arroyo_console.values import State
from fastapi import FastAPI

from .fake_console import FakeConsole, a_graph, a_pipeline, problems_at

#: So many pipelines, in all states; the first one runs. The graphs of jobs have so many nodes.
PIPELINES = 200
NODES = 300


def main() -> None:
    port, evil = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    states = list(State)
    pipelines = [
        a_pipeline(
            f"shop_{number}{evil}",
            number=number,
            state=State.RUNNING if number == 1 else states[number % len(states)],
            error=f"the broker does not answer{evil}",
        )
        for number in range(1, PIPELINES + 1)
    ]
    console = FakeConsole(*pipelines, evil=evil)
    console.graph_of = lambda text: problems_at(2, f"no operator{evil}") if "kafak" in text else a_graph(5, suffix=evil)
    if not evil:
        console.job_graph_size = NODES
    app = FastAPI()
    mount(app, console)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
