"""Where a broker's jars are kept, which are run."""

import pytest
from arroyo_kafka.broker import CACHE, VERSION, fetch_server

from arroyo_core.errors import SetupError


def test_jars_that_others_could_have_put_there_are_not_run(monkeypatch, tmp_path):
    (tmp_path / f"kafka-{VERSION}").mkdir()
    monkeypatch.setenv(CACHE.variable, str(tmp_path))
    tmp_path.chmod(0o755)
    assert fetch_server() == tmp_path / f"kafka-{VERSION}"
    tmp_path.chmod(0o777)
    with pytest.raises(SetupError, match=r"the Kafka cache .* must be a folder of this user, closed to others"):
        fetch_server()


def test_the_cache_cannot_be_off(monkeypatch):
    monkeypatch.setenv(CACHE.variable, "off")
    with pytest.raises(SetupError, match="ARROYO_KAFKA_CACHE names the folder"):
        fetch_server()
