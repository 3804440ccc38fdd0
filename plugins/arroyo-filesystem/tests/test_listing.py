from __future__ import annotations

from pathlib import Path

import pytest
from arroyo_filesystem.listing import File, formats_of, list_files, tell_format, told_endings
from arroyo_filesystem.location import open_location
from arroyo_formats.text.compressed import compression_of

from arroyo_core.errors import ConfigError


def listed(path: object, wanted: str | None = None) -> list[str]:
    return [Path(file.path).name for file in list_files(open_location(str(path), {}, field="path"), wanted)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "b.csv",
        "a.csv.gz",
        "day=1/c.csv",
        "_day=1/e.csv",
        "_staging/x.csv",
        ".hidden/x.csv",
        "sub/_tmp.csv",
        "_SUCCESS",
        "d.parquet",
        "notes.txt",
    ):
        path = tmp_path / "_data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path / "_data"


def test_a_folder_gives_its_data_files_sorted_and_none_that_are_hidden(tree: Path) -> None:
    assert listed(tree) == ["e.csv", "a.csv.gz", "b.csv", "d.parquet", "c.csv"]
    assert listed(tree, "csv") == ["e.csv", "a.csv.gz", "b.csv", "c.csv"]


def test_a_file_is_taken_whatever_its_name(tree: Path) -> None:
    assert listed(tree / "notes.txt") == ["notes.txt"]
    assert listed(tree / "_SUCCESS") == ["_SUCCESS"]


def test_a_glob_gives_what_it_matches_but_nothing_hidden(tree: Path) -> None:
    assert listed(tree / "*") == ["a.csv.gz", "b.csv", "d.parquet", "notes.txt"]
    assert listed(tree / "*.csv") == ["b.csv"]
    assert listed(tree / "**" / "*.csv") == ["e.csv", "b.csv", "c.csv"]


def test_a_name_with_glob_characters_is_found_literally(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("x")
    assert listed(tmp_path / "a[1].csv") == ["a[1].csv"]


@pytest.mark.parametrize("name", ["nothing", "*.nothing", "empty"])
def test_no_file_is_a_mistake_in_the_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError) as raised:
        listed(tmp_path / name)
    assert raised.value.field == "path"


@pytest.mark.parametrize(
    ("name", "kind", "compression"),
    [
        ("a.parquet", "parquet", None),
        ("a.PQ", "parquet", None),
        ("a.b.jsonl", "json", None),
        ("a.ndjson.zst", "json", "zstd"),
        ("a.csv.GZ", "csv", "gzip"),
        ("a.feather", "arrow", None),
        ("a.parquet.gz", None, "gzip"),
        ("a.txt", None, None),
        ("a", None, None),
    ],
)
def test_a_name_tells_format_and_compression(name: str, kind: str | None, compression: str | None) -> None:
    assert list(formats_of(name, told_endings())) == ([kind] if kind else [])
    assert compression_of(name) == compression


def test_format_must_be_told_when_names_do_not_agree() -> None:
    with pytest.raises(ConfigError, match="the files are csv and json") as raised:
        tell_format([File("a.csv", 1), File("b.json", 1)])
    assert raised.value.field == "format"
    with pytest.raises(ConfigError, match=r"the name 'a\.txt' does not tell it"):
        tell_format([File("a.txt", 1)])
    with pytest.raises(ConfigError, match=r"the name 'b' does not tell it|the name 'a\.csv' does not"):
        tell_format([File("b", 1), File("a.csv", 1)])


def test_a_change_of_size_or_version_is_a_change() -> None:
    listed_file = File("a", 1, "mtime=5")
    assert not listed_file.is_changed(File("a", 1, "mtime=5"))
    assert listed_file.is_changed(File("a", 2, "mtime=5"))
    assert listed_file.is_changed(File("a", 1, "mtime=6"))
    assert not listed_file.is_changed(File("a", 1, "ETag=6"))
    assert not File("a", 1).is_changed(File("a", 1, "mtime=6"))


@pytest.mark.parametrize("pattern", ["*a" * 25 + "*b", "**/" * 6 + "x.csv"])
def test_a_pattern_with_many_stars_is_refused_before_a_name_is_matched(tmp_path, pattern):
    (tmp_path / ("a" * 200 + ".csv")).touch()
    with pytest.raises(ConfigError, match=r"are too many: at most 4 stars .*ARROYO_MAX_PATTERN_STARS"):
        list_files(open_location(f"{tmp_path}/{pattern}", {}, field="path"), "csv")


def test_links_in_a_circle_are_not_followed_for_ever(tmp_path):
    (tmp_path / "x.csv").touch()
    for name in "abc":
        (tmp_path / name).symlink_to(".")
    assert [file.path for file in list_files(open_location(str(tmp_path), {}, field="path"), "csv")] == [
        f"{tmp_path}/x.csv"
    ]


def test_a_listing_has_a_limit(tmp_path, monkeypatch):
    for number in range(5):
        (tmp_path / f"{number}.csv").touch()
    monkeypatch.setenv("ARROYO_MAX_LISTED_FILES", "4")
    with pytest.raises(ConfigError, match="5 are too many: at most 4 files in the listing"):
        list_files(open_location(str(tmp_path), {}, field="path"), "csv")
