"""Local paths become absolute, with `~` for the home folder; other URLs stay as they are."""

from __future__ import annotations

import pytest

from arroyo_core.api.urls import absolute_url, redact_url


@pytest.fixture(autouse=True)
def _places(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("~", "{tmp}/home"),
        ("~/state", "{tmp}/home/state"),
        ("~/in/*.csv", "{tmp}/home/in/*.csv"),
        ("file://~/state", "file://{tmp}/home/state"),
        ("local://~/state", "local://{tmp}/home/state"),
        ("state", "{tmp}/work/state"),
        ("./state/", "{tmp}/work/state"),
        ("file://state", "file://{tmp}/work/state"),
        # A folder of that name, for who has one.
        ("./~/state", "{tmp}/work/~/state"),
        ("/~/state", "/~/state"),
    ],
)
def test_a_local_path_is_the_same_place_for_every_process(tmp_path, url, expected):
    assert absolute_url(url) == expected.format(tmp=tmp_path)


@pytest.mark.parametrize(
    "url",
    ["/a/state", "file:///a/state/", "s3://bucket/~/state", "memory://state", "zip://a.csv::~/b.zip", "hdfs://host/~"],
)
def test_any_other_url_stays_as_it_is(url):
    assert absolute_url(url) == url


def test_a_url_is_shown_without_its_password():
    assert redact_url("s3://me:secret@bucket/x?token=secret#job") == "s3://bucket/x#job"
    assert redact_url("./a@b?c") == "./a@b?c"
