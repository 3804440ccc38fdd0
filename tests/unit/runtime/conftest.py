"""A plugin of small operators whose lives can be followed, and pipelines made of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arroyo_testing.lanes import InlineLanes
from google.protobuf import json_format, struct_pb2

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    CommitToken,
    ConstructedOperator,
    OperatorConstructor,
    Origin,
    Registry,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.api.hashing import hash_columns
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.state import global_table_config

SUMS = pa.schema({"key": pa.int64(), "sum": pa.int64()})
SCHEMA = pa.schema({"n": pa.int64(), "key": pa.int64(), "at": pa.timestamp("us", "UTC")})


@dataclass
class Trace:
    """What the operators of a test did, across all their instances."""

    calls: list[tuple[str, int, str]] = field(default_factory=list)
    committed: list[tuple[int, list[dict]]] = field(default_factory=list)
    #: What `test.last` keeps: a number by key, and the tokens it has taken.
    values: dict[int, int] = field(default_factory=dict)
    tokens: list[CommitToken] = field(default_factory=list)
    #: Called by `test.last` at the beginning of each commit.
    on_commit: Callable[[CommitToken], None] = lambda _: None
    #: Called by a source that has nothing more for now.
    on_wait: Callable[[], None] = lambda: None
    #: Called with the operator's id, its subtask and what happens to it.
    on_call: Callable[[str, int, str], None] = lambda *_: None

    def add(self, ctx, call):
        self.calls.append((ctx.task_info.operator_id, ctx.task_info.task_index, call))
        self.on_call(*self.calls[-1])

    def of(self, operator_id, subtask=0):
        return [call for name, index, call in self.calls if (name, index) == (operator_id, subtask)]

    @property
    def rows(self):
        return [row for _, rows in self.committed for row in rows]

    def numbers(self, column="n"):
        return Counter(row[column] for row in self.rows)


class Rows(SourceOperator):
    """Gives 0..count-1, dealt over the subtasks by remainder; a watermark after each batch."""

    def __init__(self, config, trace):
        self.count = int(config.get("count", 10))
        self.size = int(config.get("batch", 3))
        self.fail = config.get("fail")
        self.then_wait = bool(config.get("then_wait"))
        self.is_living = bool(config.get("lives_on"))
        self.trace = trace

    def name(self):
        return "test.rows"

    def lives_on(self):
        return self.is_living

    def output_schema(self, inputs):
        return ArroyoSchema(SCHEMA, "at")

    def tables(self):
        return global_table_config("next", "the next number of each remainder of 12")

    def on_start(self, ctx):
        self.view = ctx.table_manager.get_global_keyed_state("next")

    def run(self, ctx, collector):
        if self.fail == "exit":
            raise SystemExit(3)
        if self.fail == "raise":
            raise ValueError("the source is broken")
        lanes = [lane for lane in range(12) if lane % ctx.task_info.parallelism == ctx.task_info.task_index]
        todo = sorted(n for lane in lanes for n in range(self.view.get(lane) or lane, self.count, 12))
        for start in range(0, len(todo), self.size):
            if (message := ctx.control()) is not None:
                return message.finish_type
            part = todo[start : start + self.size]
            collector.collect(pa.record_batch([part, [n % 5 for n in part], part], schema=SCHEMA))
            collector.broadcast_watermark(Watermark.event_time(part[-1]))
            for n in part:
                self.view.insert(n % 12, n + 12)
            ctx.report_backlog(len(todo) - start - len(part))
        if not self.then_wait:
            return SourceFinishType.FINAL
        self.trace.on_wait()
        while (message := ctx.wait(60)) is None:
            pass
        return message.finish_type


class Passing(ArrowOperator):
    """Passes rows on, and writes down what happens to it."""

    def __init__(self, config, trace):
        self.config = config
        self.trace = trace

    def name(self):
        return "test.passing"

    def lives_on(self):
        return bool(self.config.get("lives_on"))

    def input_count(self):
        return (1, None)

    def routing_keys(self, inputs):
        keys = self.config.get("keys")
        return [None if keys is None else tuple(keys)] * len(inputs)

    def output_schema(self, inputs):
        return inputs[0]

    def on_start(self, ctx):
        self.trace.add(ctx, "start")

    def process_batch_index(self, index, total_inputs, batch, ctx, collector):
        self.trace.add(ctx, f"batch {index}/{total_inputs}")
        self.process_batch(batch, ctx, collector)

    def process_batch(self, batch, ctx, collector):
        fail_at = self.config.get("fail_at")
        if fail_at is not None and int(fail_at) in batch.column("n").to_pylist():
            raise (
                ZeroDivisionError("seven is not allowed") if not self.config.get("outage") else ConnectionError("down")
            )
        if self.config.get("shows"):
            text = "".join(f"{n}\n" for n in batch.column("n").to_pylist())
            self.trace.add(ctx, f"shows {ctx.show(text, heading='n' + chr(10))}")
        if self.config.get("wrong_schema"):
            batch = batch.drop_columns(["key"])
        collector.collect(batch)

    def handle_watermark_int(self, watermark, ctx, collector):
        self.trace.add(ctx, f"watermark {watermark.event_time_us}")
        return watermark

    def handle_checkpoint(self, barrier, ctx, collector):
        self.trace.add(ctx, f"checkpoint {barrier.epoch}" + (" then_stop" if barrier.then_stop else ""))

    def on_close(self, final_message, ctx, collector):
        self.trace.add(ctx, f"close {final_message}")
        return final_message


class Noting(Passing):
    """Passes rows on; the first subtask notes in a table that all see when it has come to some number."""

    def name(self):
        return "test.noting"

    def tables(self, inputs):
        return global_table_config("notes", "numbers that came")

    def on_start(self, ctx):
        super().on_start(ctx)
        self.view = ctx.table_manager.get_global_keyed_state("notes")

    def process_batch(self, batch, ctx, collector):
        noted = int(self.config["noted"])
        if noted in batch.column("n").to_pylist():
            self.view.insert(noted, ctx.epoch)
        collector.collect(batch)

    def handle_checkpoint(self, barrier, ctx, collector):
        self.trace.add(ctx, f"sees {self.view.get_all()} in {barrier.epoch}")


class Sieve(ArrowOperator):
    """Even numbers go on, odd ones to a side output."""

    def __init__(self, config, trace):
        self.target = config.get("to", "odd")

    def name(self):
        return "test.sieve"

    def output_schema(self, inputs):
        return inputs[0]

    def side_outputs(self, inputs):
        return {"odd": ArroyoSchema(pa.schema({"n": pa.int64()}))}

    def process_batch(self, batch, ctx, collector):
        is_odd = pc.equal(pc.bit_wise_and(batch.column("n"), 1), 1)
        collector.collect(batch.filter(pc.invert(is_odd)))
        collector.collect_side(self.target, batch.filter(is_odd).select(["n"]))


class Sums(ArrowOperator):
    """The sum of n by key, at the end; added up before the shuffle where there is one."""

    def __init__(self, config, trace):
        self.trace = trace

    def name(self):
        return "test.sums"

    def routing_keys(self, inputs):
        return [("key",)]

    def output_schema(self, inputs):
        return ArroyoSchema(SUMS, key_columns=("key",))

    def partial(self, inputs):
        return PartialSums(self.trace)

    def tables(self, inputs):
        return global_table_config("sums", "the sum by key")

    def on_start(self, ctx):
        self.view = ctx.table_manager.get_global_keyed_state("sums")
        self.column = "sum" if "sum" in ctx.input_schemas[0].names else "n"
        self.trace.add(ctx, f"sums {self.column}")

    def process_batch(self, batch, ctx, collector):
        for row in batch.to_pylist():
            self.view.insert(row["key"], (self.view.get(row["key"]) or 0) + row[self.column])

    def on_close(self, final_message, ctx, collector):
        if final_message is not None:
            owned = [
                key for key in self.view.get_all() if int(hash_columns([pa.array([key])])[0]) in ctx.task_info.key_range
            ]
            rows = [{"key": key, "sum": self.view.get(key)} for key in owned]
            collector.collect(pa.RecordBatch.from_pylist(rows, schema=SUMS))
        return final_message


class PartialSums(ArrowOperator):
    def __init__(self, trace):
        self.trace = trace
        self.sums = Counter()

    def name(self):
        return "test.sums"

    def output_schema(self, inputs):
        return ArroyoSchema(SUMS)

    def process_batch(self, batch, ctx, collector):
        for row in batch.to_pylist():
            self.sums[row["key"]] += row["n"]

    def handle_watermark_int(self, watermark, ctx, collector):
        return watermark

    def handle_checkpoint(self, barrier, ctx, collector):
        rows = [{"key": key, "sum": total} for key, total in self.sums.items()]
        self.sums.clear()
        collector.collect(pa.RecordBatch.from_pylist(rows, schema=SUMS))


class Totals(ArrowOperator):
    """Adds up n by key in a state table, and emits each total at the end."""

    def __init__(self, config, trace):
        pass

    def name(self):
        return "test.totals"

    def routing_keys(self, inputs):
        return [("key",)]

    def output_schema(self, inputs):
        return ArroyoSchema(SCHEMA, "at", ("key",))

    def tables(self, inputs):
        return global_table_config("totals", "the sum by key")

    def on_start(self, ctx):
        self.view = ctx.table_manager.get_global_keyed_state("totals")
        self.seen = set()

    def process_batch(self, batch, ctx, collector):
        for row in batch.to_pylist():
            self.view.insert(row["key"], (self.view.get(row["key"]) or 0) + row["n"])
            self.seen.add(row["key"])

    def on_close(self, final_message, ctx, collector):
        if final_message is not None:
            for key, total in sorted(self.view.get_all().items()):
                if int(hash_columns([pa.array([key])])[0]) in ctx.task_info.key_range:
                    collector.collect(pa.record_batch([[total], [key], [0]], schema=SCHEMA))
        return final_message


class Committed(ArrowOperator):
    """A sink: rows are staged at the barrier and count when committed."""

    def __init__(self, config, trace):
        self.trace = trace
        self.is_living = bool(config.get("lives_on"))
        self.rows = []

    def name(self):
        return "test.sink"

    def lives_on(self):
        return self.is_living

    def input_count(self):
        return (1, None)

    def is_sink(self):
        return True

    def is_committing(self):
        return True

    def output_schema(self, inputs):
        return inputs[0]

    def tables(self, inputs):
        return global_table_config("staged", "rows", uses_two_phase_commit=True)

    def process_batch(self, batch, ctx, collector):
        self.rows += [
            {name: value.isoformat() if name == "at" else value for name, value in row.items()}
            for row in batch.to_pylist()
        ]

    def handle_checkpoint(self, barrier, ctx, collector):
        ctx.table_manager.insert_committing_data("staged", json.dumps(self.rows).encode())
        self.rows = []

    def handle_commit(self, epoch, commit_data, ctx):
        rows = [row for data in commit_data["staged"].values() for row in json.loads(data)]
        self.trace.committed.append((epoch, rows))


class Last(Committed):
    """Keeps the last number of each key: who commits last wins, unless it `honours` tokens."""

    def name(self):
        return "test.last"

    def __init__(self, config, trace):
        super().__init__(config, trace)
        self.honours = bool(config.get("honours"))

    def handle_commit(self, epoch, commit_data, ctx):
        self.trace.on_commit(ctx.token)
        if self.honours and self.trace.tokens and ctx.token < self.trace.tokens[-1]:
            ctx.warn("a driver that lost the job is refused")
            ctx.count("refused")
            return
        self.trace.tokens.append(ctx.token)
        for data in commit_data["staged"].values():
            self.trace.values.update({row["key"]: row["n"] for row in json.loads(data)})


OPERATORS = {
    "test.rows": Rows,
    "test.passing": Passing,
    "test.noting": Noting,
    "test.totals": Totals,
    "test.sink": Committed,
    "test.last": Last,
    "test.sieve": Sieve,
    "test.sums": Sums,
}


class Constructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def __init__(self, kind, trace):
        self.kind = kind
        self.trace = trace

    def with_config(self, config, registry):
        operator = self.kind(json_format.MessageToDict(config), self.trace)
        if isinstance(operator, SourceOperator):
            return ConstructedOperator.from_source(operator)
        return ConstructedOperator.from_operator(operator)


@dataclass
class Lab:
    """Plans and runs pipelines of the test operators."""

    trace: Trace
    plugins: PluginSet
    folder: str
    #: For the end of the test: the threads of jobs that did not end.
    ending: ExitStack

    def plugins_of(self, origin):
        """The same operators, from another distribution."""
        return make_plugins(self.trace, origin)

    def plan(self, nodes, **settings):
        document = {"name": "lab", "nodes": nodes, **settings}
        return plan_text(json.dumps(document), file="lab.yaml", plugins=self.plugins, environment={})

    def job(self, nodes, *, executor=None, lanes=None, listener=None, **settings):
        plan = self.plan(nodes, **settings)
        return Job(
            plan,
            executor or LocalExecutor(self.plugins),
            plugins=self.plugins,
            storage_url=self.folder,
            lanes=lanes or InlineLanes(),
            listener=listener(plan) if listener else None,
        )

    def run_until(self, job, kind, epoch):
        """As if the driver were killed right after this event of this epoch."""
        self.ending.callback(job.close)
        job.begin()
        self.go_on_until(job, kind, epoch)

    def go_on_until(self, job, kind, epoch):
        while True:
            event = job.step()
            if isinstance(event, kind) and event.epoch == epoch:
                return

    def run(self, nodes, **settings):
        return self.job(nodes, **settings).run()


def make_plugins(trace, origin):
    registry = Registry()
    with registry.registering(origin):
        for name, kind in OPERATORS.items():
            registry.add(name, Constructor(kind, trace))
    return PluginSet(registry, [])


@pytest.fixture
def lab(tmp_path):
    trace = Trace()
    with ExitStack() as ending:
        yield Lab(trace, make_plugins(trace, Origin("arroyo-test", "0.1")), tmp_path.as_uri(), ending)
