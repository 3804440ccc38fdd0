"""How a cluster is reached: settings of librdkafka, clients made of them, and what their errors mean.

Clients have threads, and a process that is forked has none of them: make clients in tasks and on the driver, never
while a module is imported. Nothing of `client` is shown: settings may be secrets, so messages have `***` for them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from arroyo_core.api import Dataset
from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
    from confluent_kafka.admin import AdminClient

#: The most seconds that one call waits for a broker. Tasks wait in shorter steps, and ask for control in between.
CALL_SECONDS = 10.0
#: What stands for a setting in anything that people see.
HIDDEN = "***"

#: Settings of librdkafka that the operators make themselves, and what to write instead.
_OWN_SETTINGS = {
    "bootstrap.servers": "it is the option bootstrap_servers",
    "metadata.broker.list": "it is the option bootstrap_servers",
    "group.id": "it is the option group_id of kafka.source",
    "isolation.level": "it is the option read_committed of kafka.source",
    "auto.offset.reset": "it is the options start and on_data_loss of kafka.source",
    "enable.auto.commit": "positions are part of the checkpoint",
    "enable.auto.offset.store": "positions are part of the checkpoint",
    "enable.partition.eof": "the source needs it",
    "group.instance.id": "partitions are not dealt by the group",
    "group.protocol": "partitions are not dealt by the group",
    "transactional.id": "the sink makes one of the job and the node",
    "enable.idempotence": "the sink needs it",
    "acks": "the sink needs the acknowledgement of all replicas",
    "request.required.acks": "the sink needs the acknowledgement of all replicas",
}
#: Quiet, unless `client` says otherwise: what goes wrong comes as errors.
_QUIET = {"log_level": "0"}
#: Secret or not, by the words in the name. Values of other settings are only left out of plans.
_SECRET_WORDS = ("password", "secret", "username", "key", "token", "oauthbearer", "jaas", "pem")
#: librdkafka refuses these alone, or reads files for them.
_CHECKED_TOGETHER = ("ssl.", "sasl.", "enable.ssl", "security.protocol")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Client:
    """A cluster, and how to speak to it. Each client that it makes is the caller's to close."""

    bootstrap_servers: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def dataset(self, topic: str) -> Dataset:
        """A topic of the cluster, which is named after the first of its brokers."""
        return Dataset(f"kafka://{self.bootstrap_servers.partition(',')[0].strip()}", topic)

    def consumer(self, own: Mapping[str, Any], *, defaults: Mapping[str, Any] | None = None) -> Consumer:
        """A consumer with these settings of the operator's own; raises `ConfigError` for a setting that is wrong.

        `defaults` hold where `client` says nothing else.
        """
        from confluent_kafka import Consumer, KafkaException

        try:
            return Consumer(self._merged(own, defaults), logger=logger)
        except KafkaException as error:
            raise self.translate(error, "cannot make a consumer") from error

    def producer(self, own: Mapping[str, Any], *, defaults: Mapping[str, Any] | None = None) -> Producer:
        """A producer, likewise."""
        from confluent_kafka import KafkaException, Producer

        try:
            return Producer(self._merged(own, defaults), logger=logger)
        except KafkaException as error:
            raise self.translate(error, "cannot make a producer") from error

    def admin(self, *, on_error: Callable[[KafkaError], None] | None = None) -> AdminClient:
        """A client that asks for topics and groups, likewise. It ends when nothing refers to it.

        `on_error` is told, when the client is polled, of connections that fail.
        """
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            settings: dict[str, Any] = {**self._merged({}), "error_cb": on_error or _ignore}
            return AdminClient(settings, logger=logger)
        except KafkaException as error:
            raise self.translate(error, "cannot make a client") from error

    def translate(self, error: KafkaException | KafkaError, doing: str) -> ArroyoError:
        """The error for people: what was done (`cannot read topic 'orders'`), the reason, and who can fix it."""
        reason = _reason(error)
        message = f"{doing}: {self.redact(reason.str())} ({reason.name()}, brokers {self.bootstrap_servers})"
        kinds = _kinds()
        if reason.code() in kinds.config:
            return ConfigError(message, field=kinds.config[reason.code()])
        return DataError(message) if reason.code() in kinds.data else ExternalError(message)

    def redact(self, text: str) -> str:
        """The text with `***` for every value of `settings` that could be a secret."""
        for name, value in sorted(self.settings.items(), key=lambda item: -len(item[1])):
            if is_secret(name) and value:
                text = text.replace(value, HIDDEN)
        return text

    def display(self) -> str:
        """The names of the settings, for plans."""
        return ", ".join(f"{name}={HIDDEN}" for name in sorted(self.settings))

    def _merged(self, own: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> dict[str, Any]:
        current_policy().check_network(f"to reach the brokers {self.bootstrap_servers}", field="bootstrap_servers")
        ours = {**own, "bootstrap.servers": self.bootstrap_servers, "error_cb": _ignore}
        return {**_QUIET, **(defaults or {}), **self.settings, **ours}


def read_client(bootstrap_servers: str, settings: Mapping[str, str]) -> Client:
    """The client of a config's fields `bootstrap_servers` and `client`; raises `ConfigError` for one of our own."""
    for name in settings:
        if name in _OWN_SETTINGS:
            raise ConfigError(f"{name} cannot be set: {_OWN_SETTINGS[name]}", field=f"client.{name}", value=name)
    return Client(bootstrap_servers, dict(settings))


def check_settings(client: Client) -> None:
    """Raises `ConfigError` for a setting that librdkafka does not know, or a value that it does not take.

    On the driver, when a pipeline is planned. Reaches no broker, but settings may name files and libraries to load:
    those of an author who is not trusted are not looked at.
    """
    if current_policy().is_untrusted:
        return
    from confluent_kafka import KafkaException, Producer

    for name, value in client.settings.items():
        # One by one, so that the mistake has a place. Settings that need each other are checked where a client is made.
        if name.startswith(_CHECKED_TOGETHER):
            continue
        try:
            Producer({**_QUIET, name: value}, logger=logger)
        except KafkaException as error:
            text = client.redact(_reason(error).str())
            raise ConfigError(text, field=f"client.{name}", value=name) from error


def is_secret(name: str) -> bool:
    """Whether the value of a setting must not get into any message."""
    return any(word in name for word in _SECRET_WORDS)


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Codes of errors that are not outages. Those of `config` have the field that is to be looked at."""

    config: Mapping[int, str]
    data: frozenset[int]


def _kinds() -> _Kinds:
    from confluent_kafka import KafkaError as Code

    return _Kinds(
        config={
            Code._INVALID_ARG: "client",
            Code._CONFLICT: "client",
            Code._NOT_CONFIGURED: "client",
            Code._AUTHENTICATION: "client",
            Code._SSL: "client",
            Code.SASL_AUTHENTICATION_FAILED: "client",
            Code.UNSUPPORTED_SASL_MECHANISM: "client",
            Code.ILLEGAL_SASL_STATE: "client",
            Code.CLUSTER_AUTHORIZATION_FAILED: "client",
            Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "client",
            Code.GROUP_AUTHORIZATION_FAILED: "group_id",
            Code.TOPIC_AUTHORIZATION_FAILED: "topic",
            Code.UNKNOWN_TOPIC_OR_PART: "topic",
            Code.TOPIC_EXCEPTION: "topic",
            Code._UNKNOWN_TOPIC: "topic",
            Code._UNKNOWN_PARTITION: "topic",
        },
        data=frozenset({Code.MSG_SIZE_TOO_LARGE, Code.INVALID_RECORD, Code.RECORD_LIST_TOO_LARGE}),
    )


def _reason(error: KafkaException | KafkaError) -> KafkaError:
    from confluent_kafka import KafkaException

    return error.args[0] if isinstance(error, KafkaException) else error


def _ignore(error: KafkaError) -> None:
    """Errors of connections: librdkafka goes on trying, and calls that wait for an answer fail with what matters."""
    logger.debug("%s", error)
