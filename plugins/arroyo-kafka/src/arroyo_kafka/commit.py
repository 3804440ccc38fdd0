"""The commit of an epoch: its messages and a marker in one transaction, however often it is repeated.

Messages are in the topic if and only if the marker says so: `arroyo_kafka.sessions` says why.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arroyo_core.api import CommitToken, OperatorContext
from arroyo_core.errors import ArroyoError, DataError, ExternalError
from arroyo_core.state import FencedError
from arroyo_kafka.markers import GroupMarkers, Marker, MarkerStore, Position, TopicMarkers
from arroyo_kafka.sessions import Session, Sessions
from arroyo_kafka.sink_settings import LostMarker, SinkSettings
from arroyo_kafka.staging import StagedBatch, StagedEpoch

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
#: A marker that is older is written again also when there is nothing to commit, so that it does not expire.
REFRESH_US = 6 * 3600 * 1_000_000
#: No cluster forgets a marker that is younger: `offsets.retention.minutes` is a week by default.
LEAST_RETENTION_US = 24 * 3600 * 1_000_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much, and for how long."""

    #: Messages of one transaction: it has to end within `transaction.timeout.ms`, a minute by default.
    part_bytes: int = 64 << 20
    #: How long a commit tries by itself, before the job restarts and tries again.
    patience_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit of one epoch of one sink."""

    settings: SinkSettings
    sessions: Sessions
    ctx: OperatorContext
    staged: StagedEpoch
    limits: Limits

    @property
    def identity(self) -> str:
        """The name of the transactions, of the group and of the marker: no other job or node has it."""
        return f"arroyo-{self._token.incarnation}-{self.ctx.task_info.operator_id}"

    @property
    def _key(self) -> Hashable:
        """Of the session: it knows the marker of one place."""
        return (
            self.identity,
            self.settings.client.bootstrap_servers,
            self.settings.topic,
            self.settings.progress_topic,
        )

    @property
    def _token(self) -> CommitToken:
        return self.ctx.token

    def run(self) -> None:
        """Return when the epoch is committed. Raises `FencedError`, and `ExternalError` where a later try may help."""
        if self.staged.is_empty:
            self._refresh()
            return
        self._try_until_done(self._commit)

    def _refresh(self) -> None:
        """An epoch without messages needs no transaction, but its marker must not grow old."""
        session = self.sessions.find(self._key)
        if session is None or not session.can_lose_marker:
            return
        if self.ctx.clock.now_us() - session.written_us < REFRESH_US:
            return

        def write() -> None:
            session = self._session()
            self._check_newest(session.marker)
            if session.marker is not None:
                self._transact(session, [], session.marker.position)

        self._try_until_done(write)

    def _try_until_done(self, attempt: Callable[[], None]) -> None:
        from confluent_kafka import KafkaException

        deadline, pause_s = time.monotonic() + self.limits.patience_s, FIRST_PAUSE_S
        while True:
            try:
                attempt()
                return
            except KafkaException as error:
                problem = self._recover(_reason(error))
            except ExternalError as error:
                self.sessions.drop(self._key)
                problem = error
            except ArroyoError:
                self._give_up()
                raise
            if time.monotonic() > deadline:
                self.sessions.drop(self._key)
                raise problem
            logger.info("commit of epoch %d, once more: %s", self._token.epoch, problem)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _commit(self) -> None:
        session, epoch = self._session(), self._token.epoch
        self._check_newest(session.marker)
        position = session.marker.position if session.marker is not None else self._without_marker(session)
        if position < Position(epoch):
            position = Position(epoch)
        if position.epoch > epoch:
            return
        for part, following in self._parts(position):
            self._transact(session, part, following)
            self.ctx.count("committed_messages", sum(batch.messages.num_rows for batch in part))

    def _parts(self, position: Position) -> Iterator[tuple[Sequence[StagedBatch], Position]]:
        """What is left of the epoch, in pieces of about `Limits.part_bytes`, each with the position behind it."""
        part: list[StagedBatch] = []
        size, done = 0, position.batches
        for batch in self.staged.batches(position.batches):
            if part and size + batch.messages.nbytes > self.limits.part_bytes:
                yield part, Position(position.epoch, done)
                part, size = [], 0
            part.append(batch)
            size += batch.messages.nbytes
            done += 1
        yield part, Position.after(position.epoch)

    def _transact(self, session: Session, part: Sequence[StagedBatch], following: Position) -> None:
        session.transact(
            part,
            Marker.at(following, self._token.generation),
            before_end=lambda: self.sessions.note_doubt(self._key, self._token),
        )
        session.written_us = self.ctx.clock.now_us()

    def _session(self) -> Session:
        return self.sessions.take(self._key, self._open_session)

    def _open_session(self) -> Session:
        return Session(self.settings.client, self.identity, self._open_markers, topic=self.settings.topic)

    def _open_markers(self) -> MarkerStore:
        if self.settings.progress_topic:
            return TopicMarkers(self.settings.client, key=self.identity, topic=self.settings.progress_topic)
        return GroupMarkers(self.settings.client, group=self.identity, topic=self.settings.topic)

    def _check_newest(self, marker: Marker | None) -> None:
        if marker is not None and marker.generation > self._token.generation:
            raise FencedError(
                f"generation {marker.generation} of this job has committed up to epoch {marker.next_epoch - 1}, and "
                f"this driver is generation {self._token.generation}: this driver must stop"
            )

    def _without_marker(self, session: Session) -> Position:
        """Where to go on when the cluster has no marker."""
        if not self._may_be_lost(session):
            return Position(self._token.epoch)
        problem = (
            f"the marker of the last commit is gone, so nobody knows whether epoch {self._token.epoch} is in the topic "
            f"already: consumer group {self.identity!r} has no offset any more. Brokers forget it after "
            "offsets.retention.minutes without a commit; a progress_topic keeps it for ever"
        )
        match self.settings.on_lost_marker:
            case LostMarker.REPEAT:
                self.ctx.warn(f"{problem}. Its messages are produced, perhaps for the second time")
                return Position(self._token.epoch)
            case LostMarker.SKIP:
                self.ctx.warn(f"{problem}. It is taken for committed; if it is not, its messages are missing")
                self._transact(session, [], Position.after(self._token.epoch))
                return Position.after(self._token.epoch)
        raise DataError(
            f"{problem}. Look whether its messages are in the topic, and run the job once with on_lost_marker: skip if "
            "they are, with on_lost_marker: repeat if they are not"
        )

    def _may_be_lost(self, session: Session) -> bool:
        """Whether there may have been a marker of this epoch that the cluster has forgotten."""
        token = self._token
        if self.staged.generation == token.generation and not self.sessions.is_in_doubt(self._key, token):
            # The driver whose epoch it is tries for the first time.
            return False
        if self.staged.has_earlier:
            return True
        # The first epoch of a job: a driver that died may have been too early or too late to write the first marker.
        return session.can_lose_marker and self.ctx.clock.now_us() - self.staged.time_us > LEAST_RETENTION_US

    def _give_up(self) -> None:
        """End what was begun: consumers of committed messages would wait for it until the transaction times out."""
        session = self.sessions.find(self._key)
        if session is not None:
            self._abort(session)
        self.sessions.drop(self._key)

    def _recover(self, reason: KafkaError) -> ArroyoError:
        """Make another try possible, and return what is raised when there is none; raises what no try can fix."""
        problem = self.settings.client.translate(reason, f"cannot commit epoch {self._token.epoch}")
        session = self.sessions.find(self._key)
        if session is None or not reason.txn_requires_abort() or not self._abort(session):
            self.sessions.drop(self._key)
        if not isinstance(problem, ExternalError):
            raise problem
        # Where somebody else has the transactions now, the next try finds out who: a newer driver's marker says so, and
        # an older one that woke up has come too late for anything.
        return problem

    def _abort(self, session: Session) -> bool:
        """Whether the session can go on."""
        from confluent_kafka import KafkaException

        try:
            session.abort()
        except KafkaException as error:
            logger.debug("the transaction could not be aborted: %s", error)
            return False
        return True


def _reason(error: Exception) -> KafkaError:
    reason: KafkaError = error.args[0]
    return reason
