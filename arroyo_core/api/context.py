"""What an operator is told and given while it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from arroyo_core.api.clock import Clock
from arroyo_core.api.given import GivenRows
from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.api.signals import ControlMessage, Watermark
from arroyo_core.api.state_tables import StateTables
from arroyo_core.api.token import CommitToken
from arroyo_core.ids import TaskInfo


class OperatorContext(ABC):
    """Given to every method of an `ArrowOperator`; valid for one subtask and one epoch."""

    task_info: TaskInfo
    table_manager: StateTables
    #: Processing time: the driver's, the same on every machine but for delays. Use it instead of the machine's own.
    clock: Clock
    #: The schemas of the inputs in the order of the node's `inputs`, and of the output.
    input_schemas: Sequence[ArroyoSchema]
    output_schema: ArroyoSchema
    #: The epoch being run; its barrier has this number.
    epoch: int
    #: The job's incarnation, the driver's generation, and the epoch that is run or, in `handle_commit`, committed.
    token: CommitToken

    @abstractmethod
    def watermark(self) -> Watermark | None:
        """The merged watermark of all inputs; None while any input has sent none."""

    @abstractmethod
    def last_present_watermark(self) -> int | None:
        """The last event-time watermark in microseconds; it survives idleness and restarts."""

    @abstractmethod
    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter of this operator, shown with its metrics (`late_rows`, `bad_rows`)."""

    @abstractmethod
    def warn(self, message: str, *, topic: str | None = None) -> None:
        """Tell the person who runs the pipeline.

        Warnings of one `topic` are one warning, of which the last message of an epoch counts; without a topic the
        message is its own. A warning that is given epoch after epoch is shown again after a minute, not each time.
        """

    def show(self, text: str, *, heading: str = "") -> bool:
        """Write text to the driver's standard output now; False where nothing can be shown before the commit.

        Only live workers can. What was shown stays shown where the epoch fails, and comes again with the epoch. The
        heading is written once, before the first text of the operator.
        """
        return False

    def redact(self, text: str) -> str:
        """`text` without the values of the config's secret fields; `warn` and errors are shown so anyway."""
        return text


class SourceContext(OperatorContext):
    """Given to every method of a `SourceOperator`."""

    @abstractmethod
    def control(self) -> ControlMessage | None:
        """The message this source must obey now, or None.

        Ask at least once per batch. After a message: save the state, then return
        `message.finish_type` from `run`. The same message is given at every later call.
        """

    @abstractmethod
    def wait(self, seconds: float) -> ControlMessage | None:
        """Sleep for at most `seconds`, less when a control message arrives; returns that message."""

    def rows_left(self) -> int | None:
        """How many rows the epoch's budget still has for this source; None if rows are not limited.

        A source that makes its batches as large as it likes keeps them within this, so that an
        epoch is as small as was asked for. One that cannot is told to stop after the batch.
        """
        return None

    def given(self) -> GivenRows | None:
        """The rows that come with the run, for this subtask and epoch; None where the epoch has none for it.

        For a source with a `given_table`. It reads them to the end, whatever `control` says: no other epoch gets
        what it leaves.
        """
        return None

    def report_backlog(self, rows: int) -> None:
        """Tell how many rows this subtask knows of and has not read; the last number of an epoch is shown."""
        return
