"""`arroyo checkpoints seal`: on, to another key, and off."""

from __future__ import annotations

import json

import pytest

from arroyo_core.cli.main import main
from arroyo_core.state import StorageProvider
from arroyo_core.state.failures import SealError, SealKeyError
from arroyo_core.state.seals import KEY_VARIABLE
from tests.unit.state.support.state_life import Life, contents, expected_at

KEY, OTHER = "k" * 64, "o" * 64


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A job without seals that has ended."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    Life(StorageProvider(str(tmp_path))).run(3)
    return tmp_path


def magics(folder):
    """How the files begin that a driver reads: the newest claim, checkpoints and markers."""
    claim = max((folder / "job/generations").glob("*.claim"), key=lambda path: int(path.stem))
    found = [claim, *folder.glob("job/checkpoints/*/checkpoint.metadata"), *folder.glob("job/checkpoints/*/*.marker")]
    return {path.read_bytes()[:8].decode() for path in found}


def go_on(folder):
    life = Life(StorageProvider(str(folder)))
    checkpoint = life.job.backend.resolve_latest().checkpoint
    assert contents(life.job.open_at(checkpoint, 2), 3) == expected_at(3)


def seal(folder, *flags):
    return main(["checkpoints", "seal", str(folder), "--force", *flags])


def test_an_unsealed_job_is_refused_until_it_is_sealed_once(folder, monkeypatch, capsys):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with pytest.raises(SealError, match="`arroyo checkpoints seal` seals the checkpoints of a job that you trust"):
        go_on(folder)
    assert seal(folder) == 1
    assert "nothing is changed: add --yes to do it" in capsys.readouterr().out
    assert magics(folder) == {"ARROYOM1"}
    assert seal(folder, "--yes") == 0
    assert "epochs 1, 2, 3 had no seal: they are taken as they are, whoever wrote them" in capsys.readouterr().out
    assert magics(folder) == {"ARROYOM2"}
    go_on(folder)
    assert seal(folder, "--yes") == 0
    assert "every file has the seal of the first key, there is nothing to do" in capsys.readouterr().out


def test_all_seals_can_be_those_of_a_new_key(folder, monkeypatch):
    for keys in (KEY, f"{OTHER} {KEY}"):
        monkeypatch.setenv(KEY_VARIABLE, keys)
        assert seal(folder, "--yes") == 0
    monkeypatch.setenv(KEY_VARIABLE, OTHER)
    go_on(folder)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with pytest.raises(SealKeyError):
        go_on(folder)


def test_seals_can_be_taken_off_by_who_has_the_key(folder, monkeypatch, capsys):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert seal(folder, "--yes") == 0
    monkeypatch.setenv(KEY_VARIABLE, OTHER)
    assert seal(folder, "--remove", "--yes") == 2
    monkeypatch.delenv(KEY_VARIABLE)
    assert seal(folder, "--remove", "--yes") == 2
    assert "no key is given: set ARROYO_SEAL_KEY" in capsys.readouterr().err
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert seal(folder, "--remove", "--yes") == 0
    assert magics(folder) == {"ARROYOM1"}
    monkeypatch.delenv(KEY_VARIABLE)
    go_on(folder)


def test_a_file_with_a_seal_that_is_not_its_own_is_not_sealed_again(folder, monkeypatch, capsys):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert seal(folder, "--yes") == 0
    one, other = (folder / f"job/checkpoints/{epoch}/checkpoint.metadata" for epoch in (1, 2))
    one.write_bytes(other.read_bytes())
    monkeypatch.setenv(KEY_VARIABLE, f"{OTHER} {KEY}")
    assert seal(folder, "--yes") == 4
    assert "does not match its seal" in capsys.readouterr().err


def test_a_driver_that_runs_is_not_disturbed_without_force(folder, monkeypatch, capsys):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert main(["checkpoints", "seal", str(folder), "--yes"]) == 2
    assert "may be running" in capsys.readouterr().err
    assert magics(folder) == {"ARROYOM1"}


def test_what_is_done_is_told_to_programs(folder, monkeypatch, capsys):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert seal(folder, "--format", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["job"], told["is_done"], told["epochs"], told["unsealed"]) == ("job", False, [1, 2, 3], [1, 2, 3])
    assert told["files"][0].endswith(".claim")
