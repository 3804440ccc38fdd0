"""Files that appear after a job has begun: read with `watch`, warned of without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from arroyo_filesystem.plugin import SourceConstructor
from arroyo_testing import SourceHarness

from arroyo_core.api import Registry, Watermark
from arroyo_core.errors import ConfigError

SCHEMA = {"n": "int64"}
WATCH_US = 10_000_000


class Folder:
    """A folder, and a job that reads it; the job lists the folder when it is started, as a driver does."""

    def __init__(self, files: Any, path: Path, **config: Any) -> None:
        self.path = path
        self._made = lambda: SourceConstructor().resolve(files.source_config(path, schema=SCHEMA, **config))
        self._config: Any = None
        self.harness = SourceHarness(lambda: SourceConstructor().with_config(self._config, Registry()))

    def write(self, name: str, *numbers: int) -> None:
        (self.path / name).write_text("".join(f'{{"n": {number}}}\n' for number in numbers))

    def start(self) -> None:
        self._config = self._made()

    def run(self, **options: Any) -> Any:
        return self.harness.run(ends_at_wait=True, **options)


@pytest.fixture
def watched(files: Any, tmp_path: Path) -> Any:
    found = Folder(files, tmp_path, watch=WATCH_US)
    yield found
    found.harness.close()


def numbers(done: Any) -> list[int]:
    return sorted(done.table["n"].to_pylist())


@pytest.mark.parametrize("parallelism", [1, 2])
def test_new_files_are_read_from_the_epoch_after_they_are_seen(watched: Folder, parallelism: int) -> None:
    watched.write("b.jsonl", 1, 2)
    watched.start()
    first = watched.run(parallelism=parallelism)
    assert numbers(first) == [1, 2]
    assert not first.is_final
    assert Watermark.idle() in first.watermarks
    watched.write("a.jsonl", 3)
    watched.write("c.jsonl", 4)
    # It is not time to look again.
    assert numbers(watched.run(parallelism=parallelism)) == []
    assert numbers(watched.run(parallelism=parallelism)) == []
    watched.harness.clock.advance(WATCH_US)
    seen = watched.run(parallelism=parallelism)
    assert numbers(seen) == []
    assert seen.counters == {"new_files": 2, "listings": 1}
    assert numbers(watched.run(parallelism=parallelism)) == [3, 4]
    assert numbers(watched.run(parallelism=parallelism)) == []


def test_an_epoch_that_is_lost_loses_no_file(watched: Folder) -> None:
    watched.write("a.jsonl", 1)
    watched.start()
    watched.run()
    watched.write("b.jsonl", 2)
    watched.harness.clock.advance(WATCH_US)
    watched.run(is_lost=True)
    watched.run()
    assert numbers(watched.run(is_lost=True)) == [2]
    assert numbers(watched.run()) == [2]
    assert numbers(watched.run()) == []


def test_new_files_come_after_a_restart_at_another_parallelism_once(watched: Folder) -> None:
    watched.write("a.jsonl", *range(10))
    watched.start()
    rows = numbers(watched.run(rows=4))
    watched.write("b.jsonl", 10, 11)
    watched.start()
    watched.harness.clock.advance(WATCH_US)
    for parallelism in (3, 2, 3, 1):
        rows += numbers(watched.run(parallelism=parallelism))
    assert sorted(rows) == list(range(12))


def test_a_folder_that_is_emptied_is_watched_on(watched: Folder) -> None:
    watched.write("a.jsonl", 1)
    watched.start()
    watched.run()
    (watched.path / "a.jsonl").unlink()
    watched.harness.clock.advance(WATCH_US)
    assert numbers(watched.run()) == []
    watched.write("b.jsonl", 2)
    watched.harness.clock.advance(WATCH_US)
    watched.run()
    assert numbers(watched.run()) == [2]


def test_without_watch_files_that_are_not_read_are_warned_of(files: Any, tmp_path: Path) -> None:
    folder = Folder(files, tmp_path)
    folder.write("a.jsonl", *range(5))
    folder.start()
    assert folder.run(rows=2).warnings == []
    for name in "bcde":
        folder.write(f"{name}.jsonl", 100)
    # As long as the job was not started again, nobody has listed the folder.
    assert folder.run(rows=2).warnings == []
    folder.start()
    done = folder.run(parallelism=2)
    folder.harness.close()
    assert numbers(done) == [4]
    (warning,) = done.warnings
    assert "b.jsonl" in warning
    assert "d.jsonl and 1 more; set 'watch'" in warning


def test_one_file_cannot_be_watched_and_the_interval_is_positive(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    for path, watch in ((tmp_path / "a.jsonl", 5), (tmp_path, 0)):
        with pytest.raises(ConfigError) as caught:
            files.make_source(path, watch=watch)
        assert caught.value.field == "watch"


def test_the_plan_says_what_becomes_of_new_files(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    assert ("new files", "not read; set watch") in files.make_source(tmp_path).inner.display().fields
    assert ("new files", "every 10s") in files.make_source(tmp_path, watch=WATCH_US).inner.display().fields
