"""Files to which lines are appended, while they are read, renamed, truncated and replaced."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from arroyo_filesystem import grown_files, growth

from arroyo_core.errors import ConfigError, OperatorError

from .support.watched import WATCH_US, Folder, numbers

Watch = Callable[..., Folder]


@pytest.fixture
def watch(files: Any, tmp_path: Path) -> Iterator[Watch]:
    made: list[Folder] = []

    def make(**config: Any) -> Folder:
        (tmp_path / "in").mkdir()
        made.append(Folder(files, tmp_path / "in", grow=True, **config))
        return made[-1]

    yield make
    for folder in made:
        folder.harness.close()


def append(path: Path, *rows: int, rest: str = "") -> None:
    with path.open("a") as stream:
        stream.write("".join(f'{{"n": {row}}}\n' for row in rows) + rest)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_whole_lines_that_are_appended_are_read_once(watch: Watch, parallelism: int) -> None:
    folder = watch()
    log = folder.path / "app.jsonl"
    append(log, 1, 2, rest='{"n"')
    folder.start()
    folder.run(parallelism=parallelism)
    assert numbers(folder.run(parallelism=parallelism)) == [1, 2]
    assert folder.read(parallelism=parallelism) == []
    append(log, rest=": 3}\n")
    append(log, 4)
    assert folder.read(parallelism=parallelism) == [3, 4]
    append(log, rest='{"n": 5}')
    assert folder.read(parallelism=parallelism) == []
    append(log, rest="\n")
    assert folder.read(parallelism=parallelism) == [5]
    assert folder.read(parallelism=parallelism) == []


def test_a_file_that_grows_while_it_is_still_to_be_read_is_read(watch: Watch) -> None:
    folder = watch()
    log = folder.path / "app.jsonl"
    append(log, *range(10))
    folder.start(batch_rows=2)
    folder.run()
    rows = numbers(folder.run(rows=4))
    append(log, 10)
    rows += numbers(folder.look(rows=2))
    append(log, 11)
    for _ in range(6):
        rows += numbers(folder.look())
    assert sorted(rows) == list(range(12))


def test_what_is_there_at_first_is_left_out_on_request(watch: Watch) -> None:
    folder = watch(start="new")
    log = folder.path / "app.jsonl"
    append(log, 1, 2)
    folder.start()
    folder.run()
    append(log, 3)
    append(folder.path / "other.jsonl", 4)
    assert folder.read() == [3, 4]


def test_a_log_that_is_rotated_goes_on_under_its_new_name(watch: Watch) -> None:
    folder = watch()
    log = folder.path / "app.jsonl"
    append(log, 1)
    folder.start()
    folder.run()
    assert numbers(folder.run()) == [1]
    append(log, 2)
    log.rename(folder.path / "app.1.jsonl")
    append(log, 100)
    append(folder.path / "app.1.jsonl", 3)
    done = folder.look()
    assert done.counters == {"listings": 1, "renamed_files": 1, "new_files": 1}
    assert done.warnings == []
    assert numbers(folder.run()) == [2, 3, 100]
    (folder.path / "app.1.jsonl").rename(folder.path / "app.2.jsonl")
    log.rename(folder.path / "app.1.jsonl")
    append(folder.path / "app.1.jsonl", 101)
    append(log, 200)
    assert folder.read() == [101, 200]
    assert folder.read() == []


def test_a_log_that_is_rotated_before_it_is_read_is_read_under_its_new_name(watch: Watch) -> None:
    folder = watch()
    log = folder.path / "app.jsonl"
    append(log, 1)
    folder.start()
    folder.run()
    log.rename(folder.path / "app.1.jsonl")
    append(log, 100, 101)
    assert numbers(folder.run()) == [], "the name is that of another file"
    assert sorted([*folder.read(), *folder.read()]) == [1, 100, 101]


def test_a_file_that_is_truncated_is_told_of_and_read_again(watch: Watch) -> None:
    folder = watch()
    log = folder.path / "app.jsonl"
    append(log, 1, 2, 3)
    folder.start()
    folder.run()
    folder.run()
    log.write_text('{"n": 7}\n')
    done = folder.look()
    assert done.counters == {"listings": 1, "truncated_files": 1}
    assert "app.jsonl: the file was truncated" in done.warnings[0]
    assert numbers(folder.run()) == [7]
    # And grew above its former size.
    log.write_text("".join(f'{{"n": {row}}}\n' for row in (21, 22, 23, 24)))
    done = folder.look()
    assert done.counters == {"listings": 1, "replaced_files": 1}
    assert numbers(folder.run()) == [21, 22, 23, 24]


def test_a_file_that_is_replaced_is_told_of_and_read_again(watch: Watch) -> None:
    folder = watch()
    folder.write("app.jsonl", 1, 2)
    folder.start()
    folder.run()
    folder.run()
    folder.write("app.jsonl", 1, 2, 3)
    done = folder.look()
    assert done.counters == {"listings": 1, "replaced_files": 1}
    assert numbers(folder.run()) == [1, 2, 3]


def test_lines_that_are_lost_before_they_are_read_fail_the_job(watch: Watch) -> None:
    folder = watch()
    log = folder.path / "app.jsonl"
    append(log, 1, 2, 3)
    folder.start()
    folder.run()
    log.write_text('{"n": 7}\n')
    with pytest.raises(OperatorError, match="truncated before all its lines were read"):
        folder.run()


def test_a_csv_file_has_its_header_once(watch: Watch) -> None:
    folder = watch(format="csv")
    log = folder.path / "a.csv"
    log.write_text("n\n")
    folder.start()
    folder.run()
    with log.open("a") as stream:
        stream.write("1\n2\n")
    assert folder.read() == [1, 2]
    with log.open("a") as stream:
        stream.write("3\n")
    assert folder.read() == [3]


@pytest.mark.parametrize("seed", range(4))
def test_every_line_is_read_once_whatever_happens(watch: Watch, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines in pieces, rotation, lost epochs, restarts and changes of the parallelism."""
    monkeypatch.setattr(growth, "PART_BYTES", 100)
    monkeypatch.setattr(grown_files, "CHUNK_BYTES", 16)
    draw = random.Random(seed)
    folder = watch()
    folder.start(batch_rows=3)
    logs = [folder.path / f"{name}.jsonl" for name in "ab"]
    halves = dict.fromkeys(logs, "")
    rows: list[int] = []
    written = rotated = 0
    parallelism = 2
    for _ in range(25):
        for log in logs:
            text = halves[log]
            for _ in range(draw.randrange(6)):
                text += f'{{"n": {written}}}\n'
                written += 1
            cut = draw.randrange(len(text) + 1) if draw.random() < 0.5 else len(text)
            with log.open("a") as stream:
                stream.write(text[:cut])
            halves[log] = text[cut:]
            if draw.random() < 0.15 and not halves[log] and log.read_text().endswith("\n"):
                log.rename(folder.path / f"old-{rotated}-{log.name}")
                rotated += 1
                log.touch()
        if draw.random() < 0.3:
            parallelism = draw.randrange(1, 4)
        is_lost = draw.random() < 0.25
        done = folder.look(parallelism=parallelism, rows=draw.choice([2, None]), is_lost=is_lost)
        if not is_lost:
            rows += numbers(done)
    for log in logs:
        with log.open("a") as stream:
            stream.write(halves[log])
    for _ in range(60):
        done = folder.look(parallelism=parallelism)
        rows += numbers(done)
    assert rotated
    assert sorted(rows) == list(range(written))


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"order": "name"}, "order"),
        ({"until": "now"}, "until"),
        ({"after_commit": "delete"}, "after_commit"),
        ({"format": "parquet"}, "grow"),
        ({"csv": {"newlines_in_values": True}, "format": "csv"}, "grow"),
        ({"watch": None}, "grow"),
    ],
)
def test_a_mistake_names_its_field(files: Any, tmp_path: Path, config: dict[str, Any], field: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    written = {"watch": WATCH_US, "format": "json", "schema": {"n": "int64"}, "grow": True, **config}
    with pytest.raises(ConfigError) as caught:
        files.make_source(tmp_path, **{name: value for name, value in written.items() if value is not None})
    assert caught.value.field == field
