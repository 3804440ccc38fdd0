"""Files that only the driver has: which of them are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from arroyo_formats.driver_files import read_text

from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import ConfigError, RefusedError


def test_a_device_is_not_read() -> None:
    with pytest.raises(ConfigError, match="not a regular file") as caught:
        read_text("/dev/zero", field="schema_file")
    assert caught.value.field == "schema_file"


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROYO_MAX_SCHEMA_BYTES", "3")
    (tmp_path / "x.avsc").write_text("long")
    with pytest.raises(ConfigError, match="too large"):
        read_text(str(tmp_path / "x.avsc"), field="schema_file")


def test_a_file_outside_is_refused_where_the_author_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "in.avsc").write_text("x")
    policy = PlanningPolicy(is_untrusted=True, roots=(tmp_path.resolve(),))
    with in_force(policy):
        assert read_text(str(tmp_path / "in.avsc"), field="schema_file") == "x"
        with pytest.raises(RefusedError, match="--root DIR"):
            read_text("/etc/passwd", field="schema_file")
