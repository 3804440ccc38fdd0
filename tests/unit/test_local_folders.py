"""Where caches are, and who can get at them."""

import os
import tempfile
from pathlib import Path

import pytest

from arroyo_core.errors import SetupError
from arroyo_core.local_folders import CLASS_ARCHIVE, STATE_CACHE, UDF_CACHE

ALL = (STATE_CACHE, UDF_CACHE, CLASS_ARCHIVE)


@pytest.fixture
def home(monkeypatch, tmp_path):
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for cache in ALL:
        monkeypatch.delenv(cache.variable, raising=False)
    return folder


@pytest.mark.parametrize("folder", ALL, ids=lambda folder: folder.name)
def test_the_environment_chooses_the_place(folder, home, monkeypatch, tmp_path):
    assert folder.path() == home / ".cache" / folder.name
    assert not folder.is_chosen
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert folder.path() == tmp_path / "caches" / folder.name
    monkeypatch.setenv(folder.variable, str(tmp_path))
    assert folder.path() == tmp_path
    assert folder.is_chosen
    monkeypatch.setenv(folder.variable, "off")
    assert folder.path() is None


@pytest.mark.parametrize("mode", [None, 0o777, 0o770])
def test_a_user_without_a_home_of_its_own_has_caches_by_its_id(home, mode):
    if mode is None:
        home.rmdir()
    else:
        home.chmod(mode)
    assert STATE_CACHE.path() == Path(tempfile.gettempdir()) / f"arroyo-state-cache-{os.getuid()}"


def test_every_folder_has_a_place_and_a_variable_of_its_own():
    assert len({folder.name for folder in ALL}) == len({folder.variable for folder in ALL}) == len(ALL)


@pytest.mark.parametrize("folder", ALL, ids=lambda folder: folder.name)
def test_a_folder_is_made_for_this_user_alone(folder, tmp_path):
    path = tmp_path / "deep" / "cache"
    folder.make(path)
    folder.make(path)
    assert path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("folder", "mode", "is_private"),
    [
        (STATE_CACHE, 0o750, False),
        (UDF_CACHE, 0o704, False),
        (CLASS_ARCHIVE, 0o755, True),
        (CLASS_ARCHIVE, 0o775, False),
    ],
)
def test_a_folder_that_others_can_get_at_is_refused(folder, mode, is_private, tmp_path):
    tmp_path.chmod(mode)
    assert folder.is_private(tmp_path) is is_private
    if not is_private:
        with pytest.raises(SetupError, match=f"closed to others .* set {folder.variable} to another folder"):
            folder.make(tmp_path)


@pytest.mark.parametrize("folder", ALL, ids=lambda folder: folder.name)
def test_a_link_in_the_place_of_a_cache_is_refused(folder, home, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (home / ".cache").mkdir()
    folder.path().symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SetupError, match=r"must be a folder of this user, closed to others .*, and not a link"):
        folder.make(folder.path())
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_link_that_was_chosen_counts_as_where_it_led_then(monkeypatch, tmp_path):
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "mine")
    monkeypatch.setenv(STATE_CACHE.variable, str(link))
    path = STATE_CACHE.path()
    link.unlink()
    link.symlink_to(tmp_path / "theirs")
    assert path == tmp_path / "mine"
