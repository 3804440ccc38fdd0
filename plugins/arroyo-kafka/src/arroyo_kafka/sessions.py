"""Sessions: a producer of transactions that has fenced all others of its name, and the marker that it has found.

Transactions of one `transactional.id` follow each other, and whoever calls `init_transactions` ends those of all others
before it. So what is read of the marker after that call stays true until somebody else makes it, and then nothing of
ours can be committed any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence

from arroyo_core.api import CommitToken
from arroyo_kafka.client import CALL_SECONDS, Client
from arroyo_kafka.markers import Marker, MarkerStore
from arroyo_kafka.sending import Sender
from arroyo_kafka.staging import StagedBatch

#: How long to wait for the answer to the end of a transaction.
END_S = 60.0


class Session:
    """A producer of transactions, and the marker as it has found or written it. One thread uses it at a time."""

    def __init__(self, client: Client, identity: str, markers: Callable[[], MarkerStore], *, topic: str) -> None:
        """`topic` is that of all messages; empty where each has its own."""
        self.marker: Marker | None = None
        #: When it was written last, by the job's clock.
        self.written_us = 0
        self._sender = Sender(client, {"transactional.id": identity})
        try:
            self._connect(topic)
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
        self._produce(batches, marker)
        before_end()
        self._end()
        self.marker = marker

    def abort(self) -> None:
        """End the transaction without effect. Raises `KafkaException`."""
        self._sender.producer.abort_transaction(CALL_SECONDS)

    def close(self) -> None:
        self._markers.close()
        self._close_producer()

    def _produce(self, batches: Sequence[StagedBatch], marker: Marker) -> None:
        from confluent_kafka import KafkaException

        try:
            for batch in batches:
                self._sender.send(batch.messages, batch.staged)
            self._markers.write(self._sender.producer, marker)
        except KafkaException as error:
            self._sender.explain(error.args[0])
            raise
        # The reason of a refused message is known only here; the end of a transaction only says that there is one.
        self._sender.flush()

    def _connect(self, topic: str) -> None:
        """Wait for a connection: without one `init_transactions` looks for its coordinator again after half a second.

        Twice, because the connection that brings the first answer ends then, and those to the brokers it names begin.
        """
        for _ in range(2):
            self._sender.producer.list_topics(topic or None, timeout=CALL_SECONDS)

    def _end(self) -> None:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + END_S
        while True:
            try:
                self._sender.producer.commit_transaction(CALL_SECONDS)
                return
            except KafkaException as error:
                # No answer: the call takes the waiting up again. It cannot be given up in any other way.
                if not error.args[0].retriable() or time.monotonic() > deadline:
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
