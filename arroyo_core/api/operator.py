"""The two traits that authors implement: `ArrowOperator` and `SourceOperator`.

The life of an instance is one epoch of one subtask:

    tables opened -> on_start -> (process_batch | handle_watermark_int | handle_tick)*
        -> [on_close(END_OF_DATA or STOP), when every input has ended]
        -> handle_checkpoint -> tables checkpointed
        -> [on_close(None), when the epoch ended with more to come]

The next epoch may run in another process, on another host, at another parallelism: whatever
is not in a state table is forgotten. An epoch may also be run twice (Spark retries tasks), and
only one of the runs counts: effects on the outside belong into `handle_commit`.
Along a chain every step goes from head to tail.

One that `lives_on` may be kept by a live worker instead: after its checkpoint the next epoch's rows follow, in the
same instance, with the same views, and `on_close(None)` comes when the worker ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from arroyo_core.api.collector import ArrowCollector, SourceCollector
from arroyo_core.api.context import OperatorContext, SourceContext
from arroyo_core.api.datasets import Dataset
from arroyo_core.api.deprecated import accept_inputs
from arroyo_core.api.guarantee import Guarantee
from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.api.signals import CheckpointBarrier, SignalMessage, SourceFinishType, Watermark

if TYPE_CHECKING:
    from arroyo_core.proto.state_pb2 import TableConfig


@dataclass(frozen=True, slots=True)
class DisplayableOperator:
    """How an operator shows itself in plans: a name and labelled details, in order."""

    name: str
    fields: Sequence[tuple[str, str]] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class UnboundedState:
    """State without a limit. `reason` is a clause about the operator, `fix` what its user can do about it."""

    reason: str
    fix: str


class _Described(ABC):
    """What both traits share."""

    @abstractmethod
    def name(self) -> str:
        """The operator's name, as registered: `plugin.operator`."""

    @abstractmethod
    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        """The type of the output for inputs of these types (a source has none; a sink returns its input).

        Called at plan time on the driver, before anything runs; must not touch the outside world
        except to read a schema. Raise `ConfigError` with `field=` for a mistake in the config.
        """

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str | Mapping[str, str]]:
        """The settings without which its tables would be misread: by label, as people are to read them.

        Called at plan time, with the types of the inputs (a source has none), and kept in every checkpoint. A job does
        not start from a checkpoint where one of them was another, until a person allows it. So only what the columns of
        a table do not tell, and what would make its rows mean something else: the size of a window, the column of a
        sum; not how often something is sent. Equal settings have equal texts (`1h`, also where `60m` is written), and
        labels do not depend on settings: one that a checkpoint does not have is not compared. A setting of several
        parts that may come and go, as aggregates do, is a mapping from their names to texts: a part that only one side
        has is not compared.
        """
        return {}

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """How often a row counts here when an epoch is run again or the job restarts; shown in plans.

        The traits answer from the other methods. Override it, and `guarantee_reason`, where that is wrong.
        """

    @abstractmethod
    def guarantee_reason(self) -> str:
        """Why, in a clause about the operator: `its position is part of the checkpoint`."""

    def datasets(self) -> Sequence[Dataset]:
        """What it reads or writes outside, for whoever keeps track of that; called on the driver, when a job starts.

        Nothing, where the operator does not say. Must not touch the outside world.
        """
        return ()

    def lives_on(self) -> bool:
        """Whether an instance may serve one epoch after the other, as live workers would have it.

        Then `on_start` is called once, and `handle_checkpoint` (of a source, `run`) once in each epoch. What it keeps
        outside of its tables must be the same after a checkpoint as `on_start` would make it from them, and nothing may
        be written twice. It may be made again before any epoch, as ever. Nothing else depends on it but speed.
        """
        return False

    def emits_watermarks(self) -> bool:
        """Whether it makes watermarks of its own, so that event time moves on behind it; asked by `arroyo lint`."""
        return False

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name())


class ArrowOperator(_Described):
    """Turns batches into batches. One instance serves one subtask, in one thread."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        accept_inputs(cls, "tables", "is_row_wise")

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        """The state tables, by name, each with its columns; see `arroyo_core.state.timestamp_table_config`.

        A pure function of the config and of the types of the inputs. Called on the driver, to compare the tables with
        those of a checkpoint, and in every subtask before `on_start`; `output_schema` need not have been called. Behind
        a `partial` operator `inputs` are its output, as in `ctx.input_schemas`.
        """
        return {}

    def input_count(self) -> tuple[int, int | None]:
        """The least and the greatest number of inputs; None for no limit."""
        return (1, 1)

    def side_outputs(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, ArroyoSchema]:
        """Outputs beside the main one, by name; a node reads one as `inputs: [node.name]`.

        Called at plan time, after `output_schema`. Rows get there by `collector.collect_side`; those
        of an output that no node reads go nowhere.
        """
        return {}

    def partial(self, inputs: Sequence[ArroyoSchema]) -> ArrowOperator | None:
        """An operator that makes the rows fewer before they are shuffled to this one, if there is one.

        Only for operators with one input. Where that input has to be shuffled, the planner puts the
        partial operator in front of the shuffle: it receives the input's rows, and this operator
        receives what it emits, and finds its output schema in `ctx.input_schemas`. Its output must
        have the columns of `routing_keys`. It has no tables: what it holds back it emits before a
        watermark goes on, in `handle_checkpoint` and in `on_close`.
        """
        return None

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        """For each input the columns that this operator reads or hands on, if of its output only `needed` are used.

        None for all of them. Called at plan time. Sources leave out what nobody needs, and everything
        behind them is then typed again, with fewer columns. An operator that keeps rows whole in its state, or
        compares the types of its inputs, answers None: its state must not depend on what comes after it.
        """
        return [None] * len(inputs)

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        """For each input the columns it must be partitioned by; None where any split will do.

        `()` sends every row to subtask 0. The planner puts a shuffle on the edge unless the input
        already is partitioned so.
        """
        return [None] * len(inputs)

    def is_row_wise(self, inputs: Sequence[ArroyoSchema]) -> bool:
        """Whether what comes of a row depends on that row alone, not on rows before it.

        So for an operator without tables. Rows that failed can be replayed through such operators at any later
        time; override it for one whose tables do not change what comes of a row.
        """
        return not self.tables(inputs)

    def needs_watermark(self, inputs: Sequence[ArroyoSchema]) -> bool:
        """Whether it holds rows or state back until a watermark has passed them; asked by `arroyo lint`.

        Without watermarks such an operator sends nothing, or keeps everything, until its input ends.
        """
        return False

    def unbounded_state(self, inputs: Sequence[ArroyoSchema]) -> UnboundedState | None:
        """Why its state, as it is configured, grows with the stream for ever; None where it does not.

        Asked by `arroyo lint`, with the types of the inputs. State that watermarks or a time to live keep small
        is bounded, and so is one value for each subtask.
        """
        return None

    def commits_with_jobs(self) -> bool:
        """Whether `handle_commit` runs jobs of Spark's own: live workers leave a slot free for them then."""
        return False

    def is_sink(self) -> bool:
        """Whether this is an end of the pipeline: it must have no consumers, all others must have one."""
        return False

    def is_committing(self) -> bool:
        """Whether `handle_commit` must be called after each published checkpoint."""
        return False

    def guarantee(self) -> Guarantee:
        """At least once for a sink that takes no part in commits, else exactly once, as state is."""
        return Guarantee.AT_LEAST_ONCE if self.is_sink() and not self.is_committing() else Guarantee.EXACTLY_ONCE

    def guarantee_reason(self) -> str:
        if not self.is_sink():
            return "its state is part of the checkpoint"
        if self.is_committing():
            return "its output becomes visible with the checkpoint it belongs to"
        return "it takes no part in commits: rows of an epoch that is run again come twice"

    def tick_interval(self) -> timedelta | None:
        """How often `handle_tick` wants to be called; the chain uses its shortest."""
        return None

    def on_start(self, ctx: OperatorContext) -> None:
        """Prepare: take views of the tables from `ctx.table_manager`, compile expressions."""
        return

    @abstractmethod
    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        """Process rows of any input."""

    def process_batch_index(
        self, index: int, total_inputs: int, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        """Process rows of input `index`, counted as in the node's `inputs`."""
        self.process_batch(batch, ctx, collector)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        """The merged watermark moved (never backwards). What is returned goes on; None holds it back."""
        return watermark

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        """The barrier arrived on every input; tables are checkpointed right after.

        Rows emitted here still belong to the epoch. May run twice for one epoch.
        """
        return

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        """Make the epoch's effects visible: `{table: {subtask: bytes}}` is what the subtasks staged.

        Called after the checkpoint is durable, again after a crash: must be idempotent. Called on the driver, once for
        all subtasks, on an instance of its own without `on_start`, and after a look whether this driver still has the
        job. It may lose it in the next moment: what replaces other values must refuse an older `ctx.token`. An epoch is
        known by `ctx.token.incarnation` and its number. Raise `ExternalError` where a retry may help.
        """
        return

    def handle_tick(self, tick: int, ctx: OperatorContext, collector: ArrowCollector) -> None:
        """Time passed; `tick` counts from 0 within the epoch."""
        return

    def on_close(
        self, final_message: SignalMessage | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> SignalMessage | None:
        """Emit what is left, and release resources. Returns the message to send on.

        END_OF_DATA or STOP: every input has ended; one last checkpoint follows. None: this instance goes away after
        the checkpoint of an epoch, and must not emit.
        """
        return final_message


class SourceOperator(_Described):
    """Brings rows in. One instance serves one subtask; `run` has a thread of its own."""

    def tables(self) -> dict[str, TableConfig]:
        """The state tables, by name; see `arroyo_core.state.global_table_config`. A source has no inputs."""
        return {}

    def is_selective(self) -> bool:
        """Whether it emits the columns of `ctx.output_schema` and reads no others.

        The planner then takes columns out of it that no other node needs.
        """
        return False

    def given_table(self) -> str | None:
        """The table where a source keeps the position of its rows, if they come with the run: `ctx.given()`.

        It is a global table. Subtask 0 stores the `GivenPosition` there, under the key `position`, as a list of its
        stream and its number, in the epoch that reads the rows. The driver reads it, and gives no rows again.
        """
        return None

    def on_start(self, ctx: SourceContext) -> None:
        """Prepare: take views of the tables from `ctx.table_manager`, open connections."""
        return

    @abstractmethod
    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        """Read on from the state, until `ctx.control()` gives a message or the data ends.

        Called once per epoch. Save the position into a table before returning. Return FINAL at the
        end of the data, else the message's `finish_type`. A source that was final may be run
        again and then returns FINAL at once.
        """

    def is_committing(self) -> bool:
        """Whether `handle_commit` must be called after each published checkpoint.

        For a source with effects of its own on the outside: acknowledgements, dead letters. It
        hands its commit data to `ctx.table_manager.insert_committing_data` before `run` returns.
        """
        return False

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        """Make the epoch's effects visible, exactly as `ArrowOperator.handle_commit`; must be idempotent."""
        return

    def guarantee(self) -> Guarantee:
        """Exactly once for a source with a table, where its position is kept, else none."""
        return Guarantee.EXACTLY_ONCE if self.tables() else Guarantee.NONE

    def guarantee_reason(self) -> str:
        if self.tables():
            return "its position is part of the checkpoint"
        return "it keeps no position: after a failure rows may come again, or never"

    def on_close(self, ctx: SourceContext) -> None:
        """Release resources; called once, after the last `run`, also when it failed."""
        return
