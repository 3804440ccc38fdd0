"""Jobs over pipelines that change from one to the next, run in process, with what their sinks committed."""

from collections import Counter

import pytest
from arroyo_testing.lanes import InlineLanes

from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.start import StartOptions, check_start
from arroyo_core.state import ParquetBackend, get_storage_provider

COUNT = 24
EVERY = {"checkpoint": {"interval": "1h", "rows": 4}}
SUMS = {key: sum(n for n in range(COUNT) if n % 5 == key) for key in range(5)}


def node(name, operator, *inputs, **config):
    found = {"id": name, "operator": f"test.{operator}", "config": config}
    return {**found, "inputs": list(inputs)} if inputs else found


#: A source, a total by key and the rows themselves, each into a sink of its own.
NODES = (
    node("rows", "rows", count=COUNT),
    node("totals", "totals", "rows"),
    node("sums", "sink", "totals"),
    node("copies", "sink", "rows"),
)


class Output:
    """What was committed in one run."""

    def __init__(self, committed):
        self.epochs = sorted({epoch for epoch, _ in committed})
        rows = [row for _, part in committed for row in part]
        #: How often each number of the source came.
        self.numbers = Counter(row["n"] for row in rows if not is_sum(row))
        #: How often each total came.
        self.sums = Counter((row["key"], row["n"]) for row in rows if is_sum(row))
        self.committed = committed

    def __add__(self, other):
        return Output(self.committed + other.committed)

    def up_to(self, epoch):
        return Output([part for part in self.committed if part[0] <= epoch])

    @property
    def is_exact(self):
        return self.numbers == Counter(range(COUNT)) and self.has_exact_sums

    @property
    def has_exact_sums(self):
        return self.sums == Counter(dict.fromkeys(SUMS.items(), 1))


def is_sum(row):
    return row["at"].startswith("1970-01-01T00:00:00+") and row["n"] == SUMS[row["key"]]


class Runs:
    """Runs jobs, one after the other."""

    nodes = NODES

    def __init__(self, lab):
        self.lab = lab
        #: What the source gives in all.
        self.numbers = Counter(range(COUNT))

    def plan(self, nodes=None, *, name="lab", **settings):
        return self.lab.plan(list(nodes or NODES), name=name, **{**EVERY, **settings})

    def job(self, options=None, *, executor=None, url=None, **facts):
        return Job(
            self.plan(**facts),
            executor or LocalExecutor(self.lab.plugins),
            plugins=self.lab.plugins,
            storage_url=url or self.lab.folder,
            lanes=InlineLanes(),
            start=options,
        )

    def run(self, options=None, **facts):
        """Run to the end."""
        before = len(self.lab.trace.committed)
        self.job(options, **facts).run()
        return Output(self.lab.trace.committed[before:])

    def kill(self, kind, epoch, options=None, **facts):
        """Run until this event, and go no further, as if the driver had been killed."""
        before = len(self.lab.trace.committed)
        self.lab.run_until(self.job(options, **facts), kind, epoch)
        return Output(self.lab.trace.committed[before:])

    def backend(self, name="lab", *, url=None, is_claimed=False):
        backend = ParquetBackend(get_storage_provider(url or self.lab.folder), name)
        if is_claimed:
            backend.claim_generation()
        return backend

    def checkpoint(self, epoch, name="lab", *, url=None) -> CheckpointMetadata:
        return self.backend(name, url=url).load_checkpoint_metadata(name, epoch)

    def check(self, options=None, *, url=None, **facts):
        plan = self.plan(**facts)
        backend = self.backend(plan.job_id, url=url)
        return check_start(backend, plan, self.lab.plugins, options or StartOptions())


@pytest.fixture
def runs(lab):
    return Runs(lab)


@pytest.fixture
def node_of():
    return node
