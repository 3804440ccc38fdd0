"""Who can read local state, whatever the umask of the driver says."""

import os

import pytest

from arroyo_core.state import StorageProvider

from ...other_user import try_as_other_user

READ = "import sys; print(open(sys.argv[1]).read())"
LIST = "import os, sys; print(os.listdir(sys.argv[1]))"


@pytest.fixture(autouse=True, params=[0o022, 0], ids=lambda mask: f"umask-{mask:03o}")
def umask(request):
    former = os.umask(request.param)
    yield
    os.umask(former)


@pytest.fixture
def place(tmp_path):
    """A folder that others may look into, as homes on shared machines often are."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    return tmp_path


def written(root):
    storage = StorageProvider(str(root))
    storage.write("job/checkpoints/1/table.parquet", b"secret")
    assert storage.put_if_absent("job/checkpoints/1/checkpoint.metadata", b"secret")
    return root / "job/checkpoints/1"


def modes(folder):
    return {path: path.stat().st_mode & 0o7777 for path in (folder, *folder.rglob("*"))}


def test_another_user_reads_no_state(place):
    folder = written(place / "state")
    for path in folder.iterdir():
        assert "PermissionError" in try_as_other_user(READ, path)
    assert "PermissionError" in try_as_other_user(LIST, place / "state")


def test_another_user_reads_no_state_below_a_folder_that_is_open(place):
    (place / "state").mkdir()
    (place / "state").chmod(0o755)
    folder = written(place / "state")
    assert try_as_other_user(LIST, place / "state") == "['job']"
    assert "PermissionError" in try_as_other_user(READ, folder / "table.parquet")


def test_files_and_folders_are_for_their_owner_alone(place):
    found = modes(written(place / "deep" / "state").parents[2])
    assert {mode for path, mode in found.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
    # What is above the state is not ours to close.
    assert (place / "deep").stat().st_mode & 0o005 == 0o005


@pytest.mark.parametrize(("mode", "of_files"), [(0o2770, 0o660), (0o2750, 0o640), (0o2777, 0o660)])
def test_a_root_with_a_group_of_its_own_shares_its_files_with_that_group(place, mode, of_files):
    root = place / "state"
    root.mkdir()
    root.chmod(mode)
    found = modes(written(root).parents[1])
    assert {mode for path, mode in found.items() if path.is_file()} == {of_files}
    assert {mode for path, mode in found.items() if path.is_dir()} == {mode & 0o2770}
