"""The commit of an epoch: its messages and a marker in one transaction, however often it is repeated.

Transactions of one `transactional.id` follow each other, and whoever calls `init_transactions` ends those of all others
before it. So what is read of the marker after that call stays true until somebody else makes it, and then nothing of
ours can be committed any more: messages are in the topic if and only if the marker says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arroyo_core.api import CommitToken, OperatorContext
from arroyo_core.errors import ArroyoError, DataError, ExternalError
from arroyo_core.state import FencedError
from arroyo_kafka.client import CALL_SECONDS, Client
from arroyo_kafka.markers import GroupMarkers, Marker, MarkerStore, Position, TopicMarkers
from arroyo_kafka.sending import Sender
from arroyo_kafka.sink_settings import LostMarker, SinkSettings
from arroyo_kafka.staging import StagedBatch, StagedEpoch

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

#: How long to wait for the answer to the end of a transaction.
END_S = 60.0
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


class Session:
    """A producer of transactions, and the marker as it has found or written it. One thread uses it at a time."""

    def __init__(self, client: Client, identity: str, markers: Callable[[], MarkerStore]) -> None:
        self.marker: Marker | None = None
        #: When it was written last, by the job's clock.
        self.written_us = 0
        self._sender = Sender(client, {"transactional.id": identity})
        try:
            # Before the marker is read: from here on no other session can move it and leave this one alive.
            self._sender.producer.init_transactions(CALL_SECONDS)
            self._markers = markers()
        except BaseException:
            self._close_producer()
            raise
        try:
            self.marker = self._markers.read()
        except BaseException:
            self.close()
            raise

    @property
    def can_lose_marker(self) -> bool:
        return self._markers.expires

    def transact(self, batches: Sequence[StagedBatch], marker: Marker, *, before_end: Callable[[], None]) -> None:
        """Produce the messages and the marker in one transaction. Raises `KafkaException`, `ArroyoError`.

        `before_end` is called when all is in the cluster but the end of the transaction: after that it may be
        committed, whatever is raised here.
        """
        self._sender.forget()
        self._sender.producer.begin_transaction()
        for batch in batches:
            self._sender.send(batch.messages, batch.staged)
        self._markers.write(self._sender.producer, marker)
        # The reason of a refused message is known only here; the end of a transaction only says that there is one.
        self._sender.flush()
        before_end()
        self._end()
        self.marker = marker

    def abort(self) -> None:
        """End the transaction without effect. Raises `KafkaException`."""
        self._sender.producer.abort_transaction(CALL_SECONDS)

    def close(self) -> None:
        self._markers.close()
        self._close_producer()

    def _end(self) -> None:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + END_S
        while True:
            try:
                self._sender.producer.commit_transaction(CALL_SECONDS)
                return
            except KafkaException as error:
                # No answer: the call takes the waiting up again. It cannot be given up in any other way.
                if not _reason(error).retriable() or time.monotonic() > deadline:
                    raise

    def _close_producer(self) -> None:
        self._sender.producer.purge()
        # Closing would wait for the cluster, and warn of what it does not answer; the next session aborts what is open.
        del self._sender


class Sessions:
    """The sessions of a process: to make one takes longer than an epoch. Every driver has its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Hashable, Session] = {}
        self._in_doubt: dict[Hashable, CommitToken] = {}

    def take(self, key: Hashable, make: Callable[[], Session]) -> Session:
        with self._lock:
            if key in self._open:
                return self._open[key]
        session = make()
        with self._lock:
            self._open[key] = session
        return session

    def find(self, key: Hashable) -> Session | None:
        with self._lock:
            return self._open.get(key)

    def drop(self, key: Hashable) -> None:
        """Close a session that cannot go on; nothing where there is none."""
        with self._lock:
            session = self._open.pop(key, None)
        if session is not None:
            session.close()

    def note_doubt(self, key: Hashable, token: CommitToken) -> None:
        """From here on the commit may be done, whatever this process hears of it."""
        self._in_doubt[key] = token

    def is_in_doubt(self, key: Hashable, token: CommitToken) -> bool:
        return self._in_doubt.get(key) == token

    def close(self) -> None:
        for key in list(self._open):
            self.drop(key)


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
        session, now_us = self.sessions.find(self._key), self.ctx.clock.now_us()
        if session is None or session.marker is None or now_us - session.written_us < REFRESH_US:
            return

        def write() -> None:
            session = self._session()
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
        return self.sessions.take(self._key, lambda: Session(self.settings.client, self.identity, self._open_markers))

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
        from confluent_kafka import KafkaException

        session = self.sessions.find(self._key)
        if session is not None:
            with suppress(KafkaException):
                session.abort()
        self.sessions.drop(self._key)

    def _recover(self, reason: KafkaError) -> ArroyoError:
        """Make another try possible, and return what is raised when there is none; raises what no try can fix."""
        from confluent_kafka import KafkaException

        problem = self.settings.client.translate(reason, f"cannot commit epoch {self._token.epoch}")
        session = self.sessions.find(self._key)
        if session is not None and reason.txn_requires_abort():
            try:
                session.abort()
                return problem if isinstance(problem, ExternalError) else ExternalError(str(problem))
            except KafkaException as error:
                logger.debug("the transaction could not be aborted: %s", error)
        self.sessions.drop(self._key)
        if isinstance(problem, ExternalError) or is_fenced(reason):
            # Somebody else has the transactions now. If that is a newer driver, its marker says so; if it was an older
            # one that woke up, it has come too late for anything.
            return problem
        raise problem


def is_fenced(reason: KafkaError) -> bool:
    from confluent_kafka import KafkaError as Code

    return reason.code() in (Code._FENCED, Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_EPOCH)


def _reason(error: Exception) -> KafkaError:
    reason: KafkaError = error.args[0]
    return reason
