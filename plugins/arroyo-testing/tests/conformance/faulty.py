"""A plugin whose every operator breaks one rule, each in the way a person would by mistake."""

from __future__ import annotations

import ast
import tempfile
import threading
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import struct_pb2

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    CommitToken,
    ConstructedOperator,
    Guarantee,
    OperatorConstructor,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.errors import ConfigError
from arroyo_core.plugin import hookimpl
from arroyo_core.state import global_table_config

SEEN_BY_ALL = {"rows": 0}


class Passing(ArrowOperator):
    """Passes rows on; the others differ from it in one thing."""

    registered = "faulty.passing"

    def __init__(self, config=None):
        self.config = dict(config or {})

    def name(self):
        return self.registered

    def output_schema(self, inputs):
        return inputs[0]

    def process_batch(self, batch, ctx, collector):
        collector.collect(batch)

    def counted(self, batch, total):
        numbers = pa.array(range(total + 1, total + batch.num_rows + 1), pa.int64())
        return pa.RecordBatch.from_arrays([*batch.columns, numbers], [*batch.schema.names, "nth"])


class Counting(Passing):
    def output_schema(self, inputs):
        return inputs[0].with_schema(inputs[0].schema.append(pa.field("nth", pa.int64())))

    def routing_keys(self, inputs):
        return [()]


class CountInAttribute(Counting):
    registered = "faulty.count_in_attribute"

    def __init__(self, config=None):
        super().__init__(config)
        self._seen = 0

    def process_batch(self, batch, ctx, collector):
        collector.collect(self.counted(batch, self._seen))
        self._seen += batch.num_rows


class SendsAgain(Passing):
    """Sends what has come at each checkpoint, and keeps it: nobody notices, unless the instance lives on."""

    registered = "faulty.sends_again"

    def __init__(self, config=None):
        super().__init__(config)
        self._batches = []

    def lives_on(self):
        return True

    def process_batch(self, batch, ctx, collector):
        self._batches.append(batch)

    def handle_checkpoint(self, barrier, ctx, collector):
        for batch in self._batches:
            collector.collect(batch)


class CountInClass(Counting):
    registered = "faulty.count_in_class"
    total = 0

    def process_batch(self, batch, ctx, collector):
        collector.collect(self.counted(batch, CountInClass.total))
        CountInClass.total += batch.num_rows


class CountInModule(Counting):
    registered = "faulty.count_in_module"

    def process_batch(self, batch, ctx, collector):
        collector.collect(self.counted(batch, SEEN_BY_ALL["rows"]))
        SEEN_BY_ALL["rows"] += batch.num_rows


class CountBySubtask(Counting):
    """Its table is keyed by the subtask, and rows go anywhere."""

    registered = "faulty.count_by_subtask"

    def routing_keys(self, inputs):
        return [None]

    def tables(self, inputs):
        return global_table_config("seen", "rows seen, by subtask")

    def on_start(self, ctx):
        self.view = ctx.table_manager.get_global_keyed_state("seen")

    def process_batch(self, batch, ctx, collector):
        seen = self.view.get(ctx.task_info.task_index) or 0
        collector.collect(self.counted(batch, seen))
        self.view.insert(ctx.task_info.task_index, seen + batch.num_rows)


class BatchNumber(Passing):
    """A result that depends on the batch."""

    registered = "faulty.first_of_batch"

    def process_batch(self, batch, ctx, collector):
        collector.collect(batch.slice(0, 1))


class EmitsWhenIdle(Passing):
    """Sends a row of its own when its input has nothing for a while."""

    registered = "faulty.emits_when_idle"

    def handle_watermark_int(self, watermark, ctx, collector):
        if watermark.is_idle:
            collector.collect(pa.RecordBatch.from_pylist([{}], schema=ctx.output_schema.schema))
        return watermark


class OtherType(Passing):
    registered = "faulty.other_type"

    def output_schema(self, inputs):
        return ArroyoSchema(pa.schema([("word", pa.string()), ("n", pa.int32())]))


class NullWhereNone(Passing):
    registered = "faulty.null_where_none"

    def output_schema(self, inputs):
        fields = [field.with_nullable(field.name != "word") for field in inputs[0].schema]
        return ArroyoSchema(pa.schema(fields))


class UndeclaredSide(Passing):
    registered = "faulty.undeclared_side"

    def process_batch(self, batch, ctx, collector):
        collector.collect(batch)
        collector.collect_side("rest", batch)


class FailsOnEmpty(Passing):
    registered = "faulty.fails_on_empty"

    def process_batch(self, batch, ctx, collector):
        batch.column("n")[0].as_py()
        collector.collect(batch)


class FailsOnNull(Passing):
    registered = "faulty.fails_on_null"

    def process_batch(self, batch, ctx, collector):
        if batch.num_rows:
            sum(len(word) for word in batch.column("word").to_pylist())
        collector.collect(batch)


class LeavesThread(Passing):
    registered = "faulty.leaves_thread"

    def on_start(self, ctx):
        threading.Thread(target=threading.Event().wait, args=(60,), name="poller", daemon=True).start()


class LeavesFile(Passing):
    registered = "faulty.leaves_file"

    def on_start(self, ctx):
        Path(tempfile.mkdtemp(), "spill").write_text("rows")


class NeedsMore(Passing):
    """Says that it needs the columns asked for, and reads another one."""

    registered = "faulty.needs_more"

    def needed_columns(self, inputs, needed):
        return [set(needed)]

    def process_batch(self, batch, ctx, collector):
        if "n" in batch.schema.names:
            batch = batch.filter(pc.greater(batch.column("n"), 2))
        collector.collect(batch)


class WrongName(Passing):
    registered = "faulty.another_name"


class OtherSettings(Passing):
    """Writes its settings down as they are in memory."""

    registered = "faulty.other_settings"

    def state_settings(self, inputs):
        return {"config": repr(self)}


class BadConfig(Passing):
    """A mistake in the config is a KeyError here."""

    registered = "faulty.bad_config"

    def __init__(self, config=None):
        super().__init__(config)
        self.key = self.config["key"]


class NamelessConfigError(Passing):
    registered = "faulty.nameless_config_error"

    def output_schema(self, inputs):
        if self.config.get("key") not in inputs[0].names:
            raise ConfigError(f"no column {self.config.get('key')!r}")
        return inputs[0]


class RowSink(Passing):
    """Publishes rows as files, as it should: staged, and given a name that follows from the job and the epoch."""

    registered = "faulty.sound_sink"

    def __init__(self, config=None):
        super().__init__(config)
        self.rows = []

    @property
    def folder(self):
        return Path(self.config["folder"])

    def is_sink(self):
        return True

    def is_committing(self):
        return True

    def tables(self, inputs):
        return global_table_config("rows", "rows to publish", uses_two_phase_commit=True)

    def process_batch(self, batch, ctx, collector):
        self.rows += batch.to_pylist()

    def handle_checkpoint(self, barrier, ctx, collector):
        ctx.table_manager.insert_committing_data("rows", repr(self.rows).encode())
        self.rows = []

    def handle_commit(self, epoch, commit_data, ctx):
        for subtask, data in commit_data.get("rows", {}).items():
            self.publish(f"{ctx.token.incarnation}-{epoch}-{subtask}", data)

    def publish(self, name, data):
        (self.folder / name).write_bytes(data)


class SinkThatNeverStartsOver(RowSink):
    registered = "faulty.never_starts_over"

    def lives_on(self):
        return True

    def handle_checkpoint(self, barrier, ctx, collector):
        ctx.table_manager.insert_committing_data("rows", repr(self.rows).encode())


class SinkThatCommitsTwice(RowSink):
    registered = "faulty.commits_twice"

    def publish(self, name, data):
        super().publish(f"{name}-{uuid.uuid4().hex}", data)


class SinkThatShowsEarly(RowSink):
    registered = "faulty.shows_early"

    def process_batch(self, batch, ctx, collector):
        super().publish(uuid.uuid4().hex, repr(batch.to_pylist()).encode())

    def publish(self, name, data):
        return


class SinkThatForgets(RowSink):
    """Commits what the instance remembers, not what the checkpoint holds."""

    registered = "faulty.forgets"

    def handle_checkpoint(self, barrier, ctx, collector):
        self.kept = repr(self.rows).encode()
        super().handle_checkpoint(barrier, ctx, collector)

    def publish(self, name, data):
        super().publish(name, getattr(self, "kept", b"[]"))


class SinkThatKnowsEpochsByNumber(RowSink):
    """Takes epoch 1 of a job whose state was removed for epoch 1 of the one before."""

    registered = "faulty.knows_epochs_by_number"

    def handle_commit(self, epoch, commit_data, ctx):
        for subtask, data in commit_data.get("rows", {}).items():
            if not (self.folder / f"{epoch}-{subtask}").exists():
                self.publish(f"{epoch}-{subtask}", data)


class LastValue(RowSink):
    """Keeps the last row of each word: who writes last wins, whoever it is."""

    registered = "faulty.last_writer_wins"

    def routing_keys(self, inputs):
        return [("word",)]

    def handle_commit(self, epoch, commit_data, ctx):
        self.update([row for data in commit_data.get("rows", {}).values() for row in ast.literal_eval(data.decode())])

    def update(self, rows):
        path = self.folder / "values"
        found = ast.literal_eval(path.read_text()) if path.exists() else []
        values = {row["word"]: row for row in [*found, *rows]}
        path.write_text(repr(list(values.values())))


class FencedLastValue(LastValue):
    """As it should be: remembers the last token that it took, and refuses older ones."""

    registered = "faulty.fenced"

    def handle_commit(self, epoch, commit_data, ctx):
        fence = self.folder / f".fence-{ctx.token.incarnation}"
        if fence.exists() and ctx.token < CommitToken(ctx.token.incarnation, *map(int, fence.read_text().split())):
            return
        super().handle_commit(epoch, commit_data, ctx)
        fence.write_text(f"{ctx.token.generation} {ctx.token.epoch}")


class OverwritingSink(RowSink):
    """Shows the rows of one epoch, that of the last commit."""

    registered = "faulty.overwrites"

    def handle_commit(self, epoch, commit_data, ctx):
        for subtask, data in commit_data.get("rows", {}).items():
            self.publish(str(subtask), data)


class CarefulSink(RowSink):
    """Publishes at the checkpoint, and does not promise more."""

    registered = "faulty.careful"

    def is_committing(self):
        return False

    def tables(self, inputs):
        return {}

    def handle_checkpoint(self, barrier, ctx, collector):
        self.publish(uuid.uuid4().hex, repr(self.rows).encode())


class SinkThatPromisesTooMuch(CarefulSink):
    registered = "faulty.promises"

    def guarantee(self):
        return Guarantee.EXACTLY_ONCE


class Numbers(SourceOperator):
    """Twenty numbers; the position is in a table. Sound at parallelism 1, and in all subtasks the same numbers."""

    registered = "faulty.numbers"

    def __init__(self, config=None):
        self.config = dict(config or {})

    def name(self):
        return self.registered

    def output_schema(self, inputs):
        return ArroyoSchema(pa.schema([("n", pa.int64())]))

    def tables(self):
        return global_table_config("position", "the next number")

    def position(self, ctx):
        return ctx.table_manager.get_global_keyed_state("position").get("next") or 0

    def save(self, ctx, position):
        ctx.table_manager.get_global_keyed_state("position").insert("next", position)

    def run(self, ctx, collector):
        position = self.position(ctx)
        while position < 20:
            message = ctx.control()
            if message is not None:
                self.save(ctx, position)
                return message.finish_type
            collector.collect(pa.record_batch({"n": pa.array([position], pa.int64())}))
            position += 1
        self.save(ctx, position)
        return SourceFinishType.FINAL


class SourceThatSkips(Numbers):
    registered = "faulty.skips"

    def save(self, ctx, position):
        super().save(ctx, position + 1)


class SourceThatRemembersItsStart(Numbers):
    """Looks into its table when it starts, and never again."""

    registered = "faulty.remembers_its_start"

    def lives_on(self):
        return True

    def on_start(self, ctx):
        self._start = super().position(ctx)

    def position(self, ctx):
        return self._start


class SourceOverBudget(Numbers):
    registered = "faulty.over_budget"

    def run(self, ctx, collector):
        position = self.position(ctx)
        while position < 20:
            for _ in range(min(5, 20 - position)):
                collector.collect(pa.record_batch({"n": pa.array([position], pa.int64())}))
                position += 1
            message = ctx.control()
            if message is not None:
                self.save(ctx, position)
                return message.finish_type
        self.save(ctx, position)
        return SourceFinishType.FINAL


class SourceThatIgnoresStops(Numbers):
    registered = "faulty.ignores_stops"

    def run(self, ctx, collector):
        answer = super().run(ctx, collector)
        return answer if answer is SourceFinishType.FINAL else SourceFinishType.CHECKPOINTED


class SourceThatWaits(Numbers):
    """Waits for a number that never comes, and does not say so."""

    registered = "faulty.waits"

    def run(self, ctx, collector):
        self.wait(collector)
        while (message := ctx.wait(10)) is None:
            continue
        return message.finish_type

    def wait(self, collector):
        return


class SourceThatIdles(SourceThatWaits):
    registered = "faulty.idles"

    def wait(self, collector):
        collector.broadcast_watermark(Watermark.idle())


class SchemaInAttribute(Passing):
    """Asks in `tables` for what `output_schema` of another instance was given."""

    registered = "faulty.schema_in_attribute"

    def output_schema(self, inputs):
        self._stream = inputs[0]
        return inputs[0]

    def tables(self, inputs):
        return global_table_config("seen", ", ".join(self._stream.names))


KINDS = [
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, ArrowOperator | SourceOperator) and hasattr(kind, "registered")
]


class Constructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def __init__(self, kind):
        self.kind = kind

    def with_config(self, config, registry):
        made = self.kind(config)
        is_source = isinstance(made, SourceOperator)
        return ConstructedOperator.from_source(made) if is_source else ConstructedOperator.from_operator(made)


class WritesIntoItsConfig(Constructor):
    """Fills its config in where the operator is made: executors do that again, each for itself."""

    def with_config(self, config, registry):
        config["folder"] = "/absolute"
        return super().with_config(config, registry)


class ResolvesInPlace(Constructor):
    def resolve(self, config):
        config["folder"] = "/absolute"
        return config


class ResolvesACopy(Constructor):
    def resolve(self, config):
        resolved = struct_pb2.Struct()
        resolved.CopyFrom(config)
        resolved["folder"] = "/absolute"
        return resolved


@hookimpl
def arroyo_register(registry):
    registry.add("faulty.writes_into_its_config", WritesIntoItsConfig(Passing))
    registry.add("faulty.resolves_in_place", ResolvesInPlace(Passing))
    registry.add("faulty.resolves_a_copy", ResolvesACopy(Passing))
    for kind in KINDS:
        if kind is WrongName:
            registry.add("faulty.wrong_name", Constructor(kind))
        elif kind is not Counting:
            registry.add(kind.registered, Constructor(kind))
