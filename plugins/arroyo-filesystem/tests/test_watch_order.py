"""What a source remembers of the files that it has read, and what it does with those that come late."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from arroyo_filesystem import new_files, window

from arroyo_core.errors import ConfigError, OperatorError

from .support.watched import SECOND_US, WATCH_US, Folder, numbers

Watch = Callable[..., Folder]


@pytest.fixture
def watch(files: Any, tmp_path: Path) -> Iterator[Watch]:
    made: list[Folder] = []

    def make(**config: Any) -> Folder:
        folder = tmp_path / "in"
        folder.mkdir(exist_ok=True)
        made.append(Folder(files, folder, **config))
        return made[-1]

    yield make
    for folder in made:
        folder.harness.close()


def test_a_folder_may_be_empty_at_first_where_format_and_schema_are_written(watch: Watch) -> None:
    folder = watch()
    folder.start()
    assert numbers(folder.run()) == []
    folder.write("a.jsonl", 1)
    assert folder.read() == [1]


def test_without_a_schema_or_a_folder_there_has_to_be_a_file(files: Any, tmp_path: Path) -> None:
    for config in ({"format": "json"}, {"schema": {"n": "int64"}}):
        with pytest.raises(ConfigError, match="no file matches"):
            files.make_source(tmp_path, watch=WATCH_US, **config)
    with pytest.raises(ConfigError, match="there is no"):
        files.make_source(tmp_path / "none", watch=WATCH_US, format="json", schema={"n": "int64"})


@pytest.mark.parametrize("order", [None, "name", "time"])
def test_files_that_are_there_at_first_are_left_out_on_request(watch: Watch, order: str | None) -> None:
    folder = watch(start="new", order=order)
    folder.write("b.jsonl", 1)
    folder.write("c.jsonl", 2)
    folder.start()
    assert numbers(folder.run(is_lost=True)) == []
    folder.write("d.jsonl", 3)
    assert numbers(folder.run()) == []
    # The first epoch was lost: what is there when the next one looks is not new either.
    assert folder.read() == []
    folder.write("a.jsonl", 4)
    assert folder.read() == [4]
    assert folder.read() == []


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("order", ["name", "time"])
def test_state_does_not_grow_with_the_files_that_were_read(watch: Watch, order: str, parallelism: int) -> None:
    folder = watch(order=order, lateness=WATCH_US)
    folder.start()
    sizes = []
    rows: list[int] = []
    for round_number in range(16):
        for number in range(20):
            at = round_number * WATCH_US + number
            folder.write(f"{round_number:04}-{number:02}.jsonl", round_number * 20 + number, modified_us=at + 1)
        rows += numbers(folder.look(parallelism=parallelism))
        state = folder.state()
        sizes.append(
            {name: len(table) for name, table in state.items()} | {"bytes": len(msgspec.msgpack.encode(state))}
        )
    rows += numbers(folder.run(parallelism=parallelism))
    assert sorted(rows) == list(range(320))
    assert len(list(folder.path.iterdir())) == 320
    # Names and numbers get longer, and nothing else.
    assert max(size["k"] for size in sizes) <= 20 * 3 + 1
    assert max(size["f"] for size in sizes) <= 20 * 3 + 10
    assert max(size["s"] for size in sizes) <= 3 * parallelism
    assert sizes[-1]["bytes"] < sizes[5]["bytes"] * 1.2


def test_a_late_file_within_the_bound_is_read(watch: Watch) -> None:
    folder = watch(order="name", lateness=3 * WATCH_US)
    folder.write("m.jsonl", 1)
    folder.start()
    assert numbers(folder.run()) == [1]
    folder.write("a.jsonl", 2)
    assert folder.read() == [2]


@pytest.mark.parametrize("order", ["name", "time"])
def test_a_file_that_comes_too_late_is_counted_named_and_not_read(watch: Watch, order: str) -> None:
    folder = watch(order=order, lateness=WATCH_US)
    for number, name in enumerate("klm"):
        folder.write(f"{name}.jsonl", number, modified_us=(number + 5) * WATCH_US)
    folder.start()
    assert numbers(folder.run()) == [0, 1, 2]
    assert folder.read() == []
    folder.write("z.jsonl", 3, modified_us=20 * WATCH_US)
    assert folder.read() == [3]
    folder.write("a.jsonl", 4, modified_us=SECOND_US)
    late = folder.look()
    assert late.counters["late_files"] == 1
    (warning,) = late.warnings
    assert "a.jsonl" in warning
    assert "raise lateness" in warning
    again = folder.look()
    assert "late_files" not in again.counters
    assert numbers(again) == []
    assert again.warnings == []


def test_a_folder_that_is_away_for_some_time_has_no_late_files(watch: Watch) -> None:
    folder = watch(order="name", lateness=0)
    for name in "abc":
        folder.write(f"{name}.jsonl", ord(name))
    folder.start()
    folder.run()
    folder.look()
    away = folder.path.rename(folder.path.with_name("away"))
    done = folder.look()
    assert "there is no folder" in done.warnings[0]
    away.rename(folder.path)
    done = folder.look()
    assert done.counters == {"listings": 1}
    assert numbers(folder.run()) == []


def test_files_that_others_delete_are_no_late_ones(watch: Watch) -> None:
    folder = watch(order="name", lateness=0)
    for name in "abcdef":
        folder.write(f"{name}.jsonl", ord(name))
    folder.start()
    folder.run()
    folder.look()
    for name in "bc":
        (folder.path / f"{name}.jsonl").unlink()
    done = folder.look()
    assert done.counters == {"listings": 1}
    folder.write("c.jsonl", 1)
    assert folder.look().counters["late_files"] == 1


@pytest.mark.parametrize("order", [None, "name", "time"])
def test_a_renamed_file_is_not_read_twice_while_it_is_remembered(watch: Watch, order: str | None) -> None:
    folder = watch(order=order)
    folder.write("a.jsonl", 1)
    folder.write("b.jsonl", 2)
    folder.start()
    assert numbers(folder.run()) == [1, 2]
    (folder.path / "a.jsonl").rename(folder.path / "z.jsonl")
    os.link(folder.path / "b.jsonl", folder.path / "y.jsonl")
    done = folder.look()
    assert done.counters == {"listings": 1, "renamed_files": 2}
    assert numbers(folder.run()) == []
    # The name is free again.
    folder.write("a.jsonl", 3)
    assert folder.read() == [3]


def test_a_file_that_is_renamed_before_it_is_read_is_read_under_its_new_name(watch: Watch) -> None:
    folder = watch()
    folder.start()
    folder.run()
    folder.write("a.jsonl", 1, 2)
    folder.look()
    (folder.path / "a.jsonl").rename(folder.path / "b.jsonl")
    missing = folder.run()
    assert missing.counters == {"missing_files": 1}
    assert "another name" in missing.warnings[0]
    assert folder.read() == [1, 2]
    assert "missed-0" not in folder.state()["s"]


def test_a_file_that_vanishes_unread_is_an_error_in_the_end(watch: Watch) -> None:
    folder = watch()
    folder.start()
    folder.run()
    folder.write("a.jsonl", 1)
    folder.look()
    (folder.path / "a.jsonl").unlink()
    for _ in range(4):
        folder.look()
    with pytest.raises(OperatorError, match="gone before it could be read"):
        folder.look()


def test_a_file_that_is_replaced_is_told_of_once_and_not_read_again(watch: Watch) -> None:
    folder = watch()
    folder.write("a.jsonl", 1)
    folder.start()
    folder.run()
    folder.write("a.jsonl", 5, 6)
    done = folder.look()
    assert done.counters == {"listings": 1, "replaced_files": 1}
    assert "a.jsonl" in done.warnings[0]
    assert numbers(folder.run()) == []
    assert folder.look().counters == {"listings": 1}


def test_without_an_order_a_name_is_forgotten_when_it_is_gone_for_long(watch: Watch) -> None:
    folder = watch(lateness=3 * WATCH_US)
    folder.write("a.jsonl", 1)
    folder.start()
    folder.run()
    (folder.path / "a.jsonl").unlink()
    folder.look()
    folder.write("a.jsonl", 1)
    folder.look()
    assert numbers(folder.run()) == [], "a listing may miss a file that is there"
    (folder.path / "a.jsonl").unlink()
    for _ in range(5):
        folder.look()
    assert list(folder.state()["k"]) == ["mark"]
    folder.write("a.jsonl", 2)
    assert folder.read() == [2]


def test_above_the_greatest_number_of_remembered_files_lateness_is_cut_short(watch: Watch) -> None:
    folder = watch(order="name", max_remembered_files=4)
    for name in "abcdefgh":
        folder.write(f"{name}.jsonl", ord(name))
    folder.start()
    folder.run()
    done = folder.look()
    assert "raise max_remembered_files" in done.warnings[0]
    assert sorted(folder.state()["k"]) == [*(f"-{folder.path}/{name}.jsonl" for name in "efgh"), "mark"]
    folder.write("a0.jsonl", 1)
    assert folder.look().counters["late_files"] == 1
    folder.write("f0.jsonl", 2)
    assert folder.read() == [2]


def test_an_order_cannot_change_once_files_are_forgotten(watch: Watch) -> None:
    folder = watch(order="name", lateness=0)
    folder.write("a.jsonl", 1)
    folder.start()
    folder.run()
    folder.look()
    for order in ("time", None):
        folder.start(order=order)
        with pytest.raises(OperatorError, match="forgotten in order of their name"):
            folder.look()


@pytest.mark.parametrize("until", ["now", "1970-01-01T00:01:40Z"])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_source_ends_with_the_files_of_a_time(watch: Watch, until: str, parallelism: int) -> None:
    folder = watch(until=until)
    folder.harness.clock.move_to(100 * SECOND_US)
    for number in range(3):
        folder.write(f"{number}.jsonl", number, modified_us=99 * SECOND_US)
    folder.start()
    first = folder.run(parallelism=parallelism)
    assert numbers(first) == [0, 1, 2]
    folder.write("a.jsonl", 9, modified_us=101 * SECOND_US)
    last = folder.look(parallelism=parallelism)
    assert numbers(last) == []
    assert last.is_final
    assert folder.look(parallelism=parallelism).is_final


def test_a_backlog_is_admitted_piece_by_piece_in_order(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (new_files, window):
        monkeypatch.setattr(module, "MAX_UNREAD", 5)
    folder = watch(order="name", lateness=0, start="new")
    folder.start()
    folder.run()
    for number in range(23):
        folder.write(f"{number:02}.jsonl", number)
    folder.harness.clock.advance(WATCH_US / SECOND_US)
    seen: list[int] = []
    for _ in range(20):
        # No time passes: it looks again because it knows that there is more.
        done = folder.run()
        assert len(folder.state()["f"]) < 12
        seen += done.table["n"].to_pylist()
    assert seen == list(range(23))


def test_a_source_without_watch_goes_on_as_one_with_it(watch: Watch) -> None:
    """Its plan, and that of watches of former versions, are of the same form."""
    folder = watch(watch=None)
    for number in range(4):
        folder.write(f"{number}.jsonl", *range(number * 10, number * 10 + 10))
    folder.start(batch_rows=5)
    rows = numbers(folder.run(parallelism=2, rows=15))
    assert "plan" in folder.state(tables=("f", "s"))["f"]
    folder.write("0a.jsonl", 100)
    folder.start(watch=WATCH_US, order="name")
    rows += numbers(folder.run(parallelism=3, rows=5))
    assert "plan" not in folder.state()["f"]
    for parallelism in (3, 1, 2):
        rows += numbers(folder.look(parallelism=parallelism))
    rows += numbers(folder.run())
    assert sorted(rows) == [*range(40), 100]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"order": "size"}, "order"),
        ({"start": "later"}, "start"),
        ({"until": "soon"}, "until"),
        ({"after_commit": "burn"}, "after_commit"),
        ({"after_commit": "archive"}, "after_commit"),
        ({"archive_path": "/tmp/x"}, "archive_path"),
        ({"max_remembered_files": -1}, "max_remembered_files"),
    ],
)
def test_a_mistake_in_a_watch_names_its_field(files: Any, tmp_path: Path, config: dict[str, Any], field: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(ConfigError) as caught:
        files.make_source(tmp_path, watch=WATCH_US, **config)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "config",
    [{"order": "name"}, {"start": "new"}, {"until": "now"}, {"after_commit": "delete"}, {"lateness": 5}],
)
def test_settings_of_a_watch_need_one(files: Any, tmp_path: Path, config: dict[str, Any]) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(ConfigError, match="needs watch") as caught:
        files.make_source(tmp_path, **config)
    assert caught.value.field in config


def test_an_order_by_time_needs_a_storage_that_tells_times(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from arroyo_filesystem import listing

    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    monkeypatch.setattr(listing, "MODIFIED_KEYS", ())
    for config, field in (({"order": "time"}, "order"), ({"until": "now"}, "until")):
        with pytest.raises(ConfigError, match=r"does not tell when .*a.jsonl") as caught:
            files.make_source(tmp_path, watch=WATCH_US, **config)
        assert caught.value.field == field


@pytest.mark.parametrize("seed", range(6))
def test_every_file_is_read_once_whatever_happens(watch: Watch, seed: int) -> None:
    """Files that come in any order within the bound, renames, lost epochs, restarts and changes of the parallelism."""
    draw = random.Random(seed)
    order = [None, "name", "time"][seed % 3]
    lateness = 6 * WATCH_US
    folder = watch(order=order, lateness=lateness)
    folder.start()
    rows: list[int] = []
    written = 0
    now = 1000 * WATCH_US
    parallelism = 2
    fresh: list[tuple[str, int]] = []
    for step in range(28):
        now += WATCH_US
        for _ in range(draw.randrange(4)):
            # Up to four looks late, in name and time: less than the bound.
            late = draw.randrange(4) * WATCH_US
            name = f"{(now - late) // WATCH_US:06}-{written:04}.jsonl"
            folder.write(name, written * 2, written * 2 + 1, modified_us=now - late)
            fresh.append((name, step))
            written += 1
        if fresh and draw.random() < 0.3:
            name, _ = fresh.pop(draw.randrange(len(fresh)))
            stem = name.split("-")[0]
            (folder.path / name).rename(folder.path / f"{stem}-r{name.removeprefix(stem)}")
        fresh = [(name, since) for name, since in fresh if step - since < 2]
        if draw.random() < 0.3:
            parallelism = draw.randrange(1, 4)
        if draw.random() < 0.2:
            folder.start()
        is_lost = draw.random() < 0.25
        done = folder.look(parallelism=parallelism, rows=draw.choice([1, 3, None]), is_lost=is_lost)
        if not is_lost:
            rows += numbers(done)
        assert "late_files" not in done.counters, step
    for _ in range(written + 4):
        rows += numbers(folder.look(parallelism=parallelism))
    assert sorted(rows) == list(range(written * 2))
