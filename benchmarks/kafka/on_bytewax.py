"""Bytewax: two processes with a worker each and recovery on, as over files."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from ..nexmark.engine_bytewax import run_flow
from .tasks import TopicTask, TopicTiming


def main() -> None:
    task = TopicTask.read(Path(sys.argv[1]))
    job_s = run_flow(f"{__package__}.bytewax_flows:flow('{sys.argv[1]}')", task)
    TopicTiming(
        job_s=job_s,
        epochs=1,
        rows=sum(int(path.read_text()) for path in Path(task.scratch).glob("*.rows")),
        versions={"bytewax": version("bytewax")},
    ).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
