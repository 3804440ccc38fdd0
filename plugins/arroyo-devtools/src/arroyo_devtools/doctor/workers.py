"""What the Python workers of a Spark have, asked from inside their tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """One Python that runs tasks. `packages` has the versions of the distributions asked for, None where missing."""

    host: str
    python: str
    executable: str
    packages: Mapping[str, str | None] = field(default_factory=dict)


def probe_workers(session: Any, distributions: Sequence[str], *, tasks: int = 4) -> list[WorkerFacts]:
    """Run some small tasks in a Spark session; the different Pythons that they ran in."""
    names = list(distributions)

    # Nested, so that it is sent as it is: a worker without this package must be able to say so.
    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        import json
        import platform
        import socket
        import sys
        from importlib.metadata import PackageNotFoundError, version

        import pyarrow as pa

        packages: dict[str, str | None] = {}
        for name in names:
            try:
                packages[name] = version(name)
            except PackageNotFoundError:
                packages[name] = None
        facts = {
            "host": socket.gethostname(),
            "python": platform.python_version(),
            "executable": sys.executable,
            "packages": packages,
        }
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"facts": [json.dumps(facts, sort_keys=True)]})

    rows = session.range(0, tasks, 1, tasks).mapInArrow(ask, "facts string").collect()
    return [WorkerFacts(**json.loads(facts)) for facts in sorted({row["facts"] for row in rows})]
