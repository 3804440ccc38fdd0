"""The cache under attack: it never gives bytes that do not match their digest."""

import errno
import fcntl
import hashlib
import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from arroyo_core.errors import ExternalError, SetupError
from arroyo_core.udf import artifact_cache
from arroyo_core.udf.artifact_cache import ArtifactCache, default_artifact_cache
from arroyo_core.udf.failures import DigestMismatchError

DATA = b"an honest artifact " * 1000
SHA256 = hashlib.sha256(DATA).hexdigest()


class Store:
    """Counts how often it is asked."""

    def __init__(self, data=DATA):
        self.data = data
        self.fetches = 0

    def fetch(self):
        self.fetches += 1
        if isinstance(self.data, Exception):
            raise self.data
        return self.data


@pytest.fixture
def store():
    return Store()


def load(cache, store, sha256=SHA256):
    return cache.load(sha256, store.fetch, what="the bundle")


def entry(cache, sha256=SHA256):
    return cache.folder / f"{sha256}.artifact"


def test_an_artifact_is_fetched_once(cache, store):
    assert load(cache, store) == load(cache, store) == load(ArtifactCache(cache.folder), store) == DATA
    assert store.fetches == 1
    assert load(cache, store, SHA256.upper()) == DATA


def test_an_outage_is_ridden_out(cache, store):
    load(cache, store)
    store.data = ExternalError("the store is away")
    assert load(cache, store) == DATA
    with pytest.raises(ExternalError, match="away"):
        load(cache, store, "0" * 64)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(DATA[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(DATA[:-1] + b"!"),
        lambda path: path.write_bytes(DATA + b"!"),
    ],
    ids=["truncated", "empty", "other", "longer"],
)
def test_a_damaged_entry_is_fetched_anew(cache, store, damage, caplog):
    load(cache, store)
    damage(entry(cache))
    assert load(cache, store) == DATA
    assert store.fetches == 2
    assert "does not match its digest" in caplog.text
    assert entry(cache).read_bytes() == DATA


def test_a_damaged_entry_is_not_used_though_the_store_is_away(cache, store):
    load(cache, store)
    entry(cache).write_bytes(DATA[:100])
    store.data = ExternalError("the store is away")
    with pytest.raises(ExternalError, match="away"):
        load(cache, store)


def test_links_are_never_followed(cache, store, tmp_path):
    target = tmp_path / "elsewhere"
    target.write_bytes(DATA)
    entry(cache).symlink_to(target)
    assert load(cache, store) == DATA
    assert store.fetches == 1
    assert not entry(cache).is_symlink()
    assert target.read_bytes() == DATA


def test_a_lock_that_is_a_link_is_never_followed(cache, store, tmp_path):
    target = tmp_path / "elsewhere"
    (cache.folder / f"{SHA256}.lock").symlink_to(target)
    assert load(cache, store) == DATA
    assert not target.exists()


def test_something_else_than_a_file_is_no_entry(cache, store):
    os.mkfifo(entry(cache))
    assert load(cache, store) == DATA
    assert load(cache, store) == DATA
    assert store.fetches == 1
    other = hashlib.sha256(b"x").hexdigest()
    entry(cache, other).mkdir()
    assert load(cache, Store(b"x"), other) == b"x"


def test_a_store_that_gives_something_else_is_an_error_and_nothing_is_kept(cache):
    store = Store(b"something else")
    with pytest.raises(DigestMismatchError, match=r"the bundle has the sha256 .* \(14 bytes\), not .*changed or is"):
        load(cache, store)
    assert store.fetches == artifact_cache.FETCHES
    assert not entry(cache).exists()


def test_a_transfer_that_was_cut_once_is_asked_for_again(cache):
    answers = [DATA[:500], DATA]
    assert cache.load(SHA256, lambda: answers.pop(0), what="x") == DATA


@pytest.mark.parametrize("sha256", ["", "abc", "../../etc/passwd", "g" * 64, "0" * 63 + "/"])
def test_what_is_no_digest_names_no_file(cache, store, sha256):
    with pytest.raises(DigestMismatchError, match="is not a sha256"):
        load(cache, store, sha256)
    assert store.fetches == 0


def test_entries_that_change_while_they_are_read_are_never_given_out(cache, store):
    """An attacker with the user's own rights rewrites the entry in place, all the time."""
    load(cache, store)
    done = threading.Event()

    def attack():
        contents = [b"evil" * 2000, DATA[:4096], b"", DATA]
        number = 0
        while not done.is_set():
            number += 1
            try:
                with entry(cache).open("r+b") as file:
                    file.write(contents[number % len(contents)])
                    file.truncate()
            except OSError:
                os.sched_yield()

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        loads = 0
        # Until the attacker has been seen at least once: a busy machine may let it wait.
        while loads < 300 or store.fetches == 1:
            assert load(cache, store) == DATA
            loads += 1
    finally:
        done.set()
        thread.join()


RACER = """
import hashlib, sys, time
from pathlib import Path
from arroyo_core.udf.artifact_cache import ArtifactCache

folder, rounds, me = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
cache = ArtifactCache(folder / "cache")
for number in range(rounds):
    data = f"artifact {number}".encode() * 5000
    print("ready", flush=True)
    sys.stdin.readline()

    def fetch():
        (folder / f"fetch-{number}-{me}").touch()
        # A download takes a while, in which the other process asks, too; it cannot be seen that it waits.
        time.sleep(0.003)
        return data

    assert cache.load(hashlib.sha256(data).hexdigest(), fetch, what="x") == data
"""


def test_processes_that_ask_at_once_download_once(tmp_path):
    rounds = 50
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), str(rounds), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(2)
    ]
    for _ in range(rounds):
        assert [racer.stdout.readline() for racer in racers] == [b"ready\n"] * 2
        for racer in racers:
            racer.stdin.write(b"go\n")
            racer.stdin.flush()
    for racer in racers:
        racer.communicate(timeout=120)
        assert racer.returncode == 0
    fetches = sorted(path.name.rsplit("-", 1)[0] for path in tmp_path.glob("fetch-*"))
    assert fetches == sorted(f"fetch-{number}" for number in range(rounds))


def test_threads_that_ask_at_once_download_once(cache, monkeypatch):
    store = Store()
    store_fetch = store.fetch
    lock = fcntl.flock
    asked = threading.Semaphore(0)

    def ask(descriptor, operation):
        asked.release()
        lock(descriptor, operation)

    def slow():
        """Comes back when all the others want the lock, too."""
        for _ in range(8):
            assert asked.acquire(timeout=60)
        return store_fetch()

    monkeypatch.setattr(fcntl, "flock", ask)

    results = []
    threads = [threading.Thread(target=lambda: results.append(cache.load(SHA256, slow, what="x"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [DATA] * 8
    assert store.fetches == 1


def test_a_process_that_dies_while_it_writes_leaves_no_entry(tmp_path):
    script = """
    import hashlib, os, sys
    from arroyo_core.udf import artifact_cache
    artifact_cache.os.fsync = lambda descriptor: os.kill(os.getpid(), 9)
    data = b"x" * 100_000
    cache = artifact_cache.ArtifactCache(sys.argv[1])
    cache.load(hashlib.sha256(data).hexdigest(), lambda: data, what="x")
    """
    folder = tmp_path / "cache"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(folder)], check=False)
    assert done.returncode == -9
    (left,) = folder.glob("unfinished-*")
    assert not list(folder.glob("*.artifact"))
    os.utime(left, (1, 1))
    cache, store = ArtifactCache(folder), Store(b"x" * 100_000)
    assert len(load(cache, store, hashlib.sha256(store.data).hexdigest())) == 100_000
    assert not left.exists()


def test_a_full_disk_means_running_from_memory(tmp_path):
    """A real limit on the size of files: the write fails in the middle."""
    script = """
    import hashlib, logging, resource, signal, sys
    from arroyo_core.udf.artifact_cache import ArtifactCache
    logging.basicConfig()
    cache = ArtifactCache(sys.argv[1])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    data = b"x" * 100_000
    for _ in range(2):
        assert cache.load(hashlib.sha256(data).hexdigest(), lambda: data, what="x") == data
    """
    folder = tmp_path / "cache"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(folder)], check=True, capture_output=True, text=True
    )
    assert "used from memory" in done.stderr
    assert [path.suffix for path in folder.iterdir()] == [".lock"]


def test_a_read_only_folder_means_running_from_memory(cache, store, monkeypatch, caplog):
    other = Store(b"kept before")
    kept = hashlib.sha256(other.data).hexdigest()
    load(cache, other, kept)
    real_open = os.open

    def read_only(path, flags, *rest):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real_open(path, flags, *rest)

    monkeypatch.setattr(artifact_cache.os, "open", read_only)
    assert load(cache, store) == load(cache, store) == DATA
    assert store.fetches == 2
    assert "Read-only file system" in caplog.text
    assert load(cache, other, kept) == b"kept before"
    assert other.fetches == 1


def test_the_folder_must_be_closed_to_others(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with pytest.raises(SetupError, match=r"closed to others \(mode 700\)"):
        ArtifactCache(folder)
    folder.chmod(0o700)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(SetupError, match="must be a folder of this user"):
        ArtifactCache(tmp_path / "link")


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    cache = ArtifactCache(tmp_path / "small", max_bytes=2500)
    contents = [bytes([number]) * 1000 for number in range(4)]
    digests = [hashlib.sha256(data).hexdigest() for data in contents]
    for age, data in ((20, contents[0]), (10, contents[1])):
        cache.put(data)
        used = time.time() - age
        os.utime(entry(cache, hashlib.sha256(data).hexdigest()), (used, used))
    cache.load(digests[0], lambda: b"", what="x")
    cache.put(contents[2])
    assert [entry(cache, digest).exists() for digest in digests] == [True, False, True, False]
    assert cache.size_bytes() == 2000


def test_one_that_is_too_big_for_the_cache_is_used_all_the_same(tmp_path):
    cache = ArtifactCache(tmp_path / "tiny", max_bytes=10)
    assert load(cache, Store()) == DATA


def test_signatures_go_with_their_artifact(tmp_path):
    cache = ArtifactCache(tmp_path / "small", max_bytes=1500)
    first = cache.put(b"a" * 1000)
    cache.put_signature(first, b"signed")
    assert cache.read_signature(first) == b"signed"
    cache.put(b"b" * 1000)
    assert cache.read_signature(first) is None


def test_the_cache_can_be_turned_off_or_put_elsewhere(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("ARROYO_UDF_CACHE", "off")
    assert default_artifact_cache() is None
    monkeypatch.setenv("ARROYO_UDF_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_artifact_cache().folder == tmp_path / "arroyo-udf-cache"
    default_artifact_cache().folder.chmod(0o777)
    with caplog.at_level(logging.WARNING):
        assert default_artifact_cache() is None
    assert "not cached" in caplog.text
    monkeypatch.setenv("ARROYO_UDF_CACHE", str(tmp_path / "arroyo-udf-cache"))
    with pytest.raises(SetupError, match="cannot be used"):
        default_artifact_cache()
    (tmp_path / "file").touch()
    monkeypatch.setenv("ARROYO_UDF_CACHE", str(tmp_path / "file"))
    with pytest.raises(SetupError, match="cannot be used"):
        default_artifact_cache()


def test_the_bound_of_the_cache_is_a_number(monkeypatch, tmp_path):
    monkeypatch.setenv("ARROYO_UDF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ARROYO_UDF_CACHE_BYTES", "1000")
    assert default_artifact_cache().max_bytes == 1000
    monkeypatch.setenv("ARROYO_UDF_CACHE_BYTES", "1GB")
    with pytest.raises(SetupError, match="is a number of bytes, not '1GB'"):
        default_artifact_cache()
    assert Path(tmp_path / "cache").exists()
