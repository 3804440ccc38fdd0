"""SASL and TLS, against a broker with such listeners; secrets stay secret."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from arroyo_kafka.broker import Broker, free_port, running_broker
from arroyo_kafka.open_consumers import open_consumers
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from arroyo_core.errors import Domain, OperatorError, RetryHint, SetupError
from tests.certificates import make_certificates

from .support.cluster import SECONDS, Cluster
from .support.sources import Sources, ids, messages

PASSWORD = "hunter2-of-ana"
PLAIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
SCRAM = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
USER = {"sasl.username": "ana", "sasl.password": PASSWORD}
TOPIC = "secured"


@dataclass(frozen=True, slots=True)
class Secured:
    """A broker with listeners for SASL, and for SASL over TLS."""

    sasl: str
    tls: str
    authority: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority, _ = make_certificates(folder / "certificates")
    plain, controller, sasl, tls = (free_port() for _ in range(4))
    try:
        with running_broker(port=plain, settings=listeners(plain, controller, sasl, tls, folder)) as broker:
            prepare(broker)
            yield Secured(f"127.0.0.1:{sasl}", f"127.0.0.1:{tls}", authority)
            open_consumers.close_all()
    except SetupError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Kafka broker: {error}")


def listeners(plain: int, controller: int, sasl: int, tls: int, folder: Path) -> dict[str, str]:
    ports = {"PLAINTEXT": plain, "SASL_PLAINTEXT": sasl, "SASL_SSL": tls}
    outside = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
    settings = {
        "listeners": ",".join([*outside, f"CONTROLLER://127.0.0.1:{controller}"]),
        "advertised.listeners": ",".join(outside),
        "listener.security.protocol.map": ",".join([*(f"{name}:{name}" for name in ports), "CONTROLLER:PLAINTEXT"]),
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "certificates" / "server.pem"),
    }
    modules = "org.apache.kafka.common.security"
    for name in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{name}"
        user = f'required user_ana="{PASSWORD}";'
        settings[f"{prefix}.plain.sasl.jaas.config"] = f"{modules}.plain.PlainLoginModule {user}"
        settings[f"{prefix}.scram-sha-256.sasl.jaas.config"] = f"{modules}.scram.ScramLoginModule required;"
    return settings


def prepare(broker: Broker) -> None:
    """A user for SCRAM, and a topic."""
    with Cluster(broker.bootstrap_servers) as cluster:
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        user = UserScramCredentialUpsertion("ana", credential, PASSWORD.encode())
        for done in cluster.admin.alter_user_scram_credentials([user]).values():
            done.result(SECONDS)
        cluster.create(TOPIC)
        cluster.produce(TOPIC, messages(range(5)))


@pytest.mark.parametrize("mechanism", [PLAIN, SCRAM])
def test_sasl(secured: Secured, mechanism: dict[str, str]) -> None:
    sources = Sources(secured.sasl)
    harness = sources(topic=TOPIC, until="latest", client={**mechanism, **USER})
    assert ids(harness.run_all()) == [0, 1, 2, 3, 4]
    sources.close()


def test_sasl_over_tls(secured: Secured) -> None:
    sources = Sources(secured.tls)
    client = {**SCRAM, **USER, "security.protocol": "SASL_SSL", "ssl.ca.location": str(secured.authority)}
    assert ids(sources(topic=TOPIC, until="latest", client=client).run_all()) == [0, 1, 2, 3, 4]
    sources.close()


def test_a_wrong_password_is_no_outage_and_is_not_shown(secured: Secured) -> None:
    wrong: dict[str, Any] = {**PLAIN, **USER, "sasl.password": "wrong-hunter2"}
    sources = Sources(secured.sasl)
    with pytest.raises(OperatorError) as raised:
        sources(topic=TOPIC, until="latest", client=wrong).run()
    sources.close()
    assert "hunter2" not in str(raised.value)
    assert (raised.value.cause_domain, raised.value.cause_retry) == (Domain.USER, RetryHint.NO_RETRY)
