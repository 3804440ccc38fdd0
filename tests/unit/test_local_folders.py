"""Where caches are, and who can get at them."""

import os
import tempfile
from pathlib import Path

import pytest

from arroyo_core.errors import SetupError
from arroyo_core.local_folders import CLASS_ARCHIVE, STATE_CACHE, UDF_CACHE, LocalFolder

ALL = (STATE_CACHE, UDF_CACHE, CLASS_ARCHIVE)


@pytest.mark.parametrize("folder", ALL, ids=lambda folder: folder.name)
def test_the_environment_chooses_the_place(folder, monkeypatch, tmp_path):
    monkeypatch.delenv(folder.variable, raising=False)
    assert folder.path() == Path(tempfile.gettempdir()) / f"{folder.name}-{os.getuid()}"
    assert not folder.is_chosen
    monkeypatch.setenv(folder.variable, str(tmp_path))
    assert folder.path() == tmp_path
    assert folder.is_chosen
    monkeypatch.setenv(folder.variable, "off")
    assert folder.path() is None


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


def test_a_link_is_refused_unless_it_may_be_one(tmp_path):
    (tmp_path / "folder").mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder")
    may_not, may = (LocalFolder(what="x", variable="X", name="x", follows_links=follows) for follows in (False, True))
    may.make(link)
    with pytest.raises(SetupError):
        may_not.make(link)
