"""Outages are told from answers, and parts of a file are read again after one."""

from __future__ import annotations

import errno
import io

import pytest

from arroyo_core.state import StorageProvider, backoff_s, is_transient
from arroyo_core.state.failures import MissingFileError, StorageError

from .support.recording import DictDriver


class ClientPayloadError(Exception):
    """Named as the one of an HTTP client."""


class AnswerError(Exception):
    """Carries a response, as the errors of S3 clients do."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.response = {"Error": {"Code": "x"}, "ResponseMetadata": {"HTTPStatusCode": status}}


def caused_by(cause):
    error = OSError(errno.EIO, "translated")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        TimeoutError(),
        OSError(errno.EBUSY, "slow down"),
        ClientPayloadError(),
        AnswerError(503),
        AnswerError(429),
        caused_by(AnswerError(502)),
        caused_by(ClientPayloadError()),
    ],
)
def test_an_outage_is_worth_another_attempt(error):
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError("a"),
        PermissionError("a"),
        ValueError("a"),
        OSError(errno.ENOSPC, "full"),
        AnswerError(403),
        caused_by(AnswerError(412)),
    ],
)
def test_an_answer_is_not(error):
    assert not is_transient(error)


def test_waits_grow():
    assert backoff_s(1) < backoff_s(3) < backoff_s(5) < 2


class BrokenFile(io.BytesIO):
    def __init__(self, data, failures):
        super().__init__(data)
        self._failures = failures

    def read(self, size=-1):
        if self._failures:
            raise self._failures.pop(0)
        return super().read(size)


@pytest.fixture
def broken():
    """A store with a file `a`, and the failures of the next reads from it."""
    failures = []
    driver = DictDriver({"a": b"0123456789"})
    driver.open = lambda path: BrokenFile(driver.read(path), failures)
    return StorageProvider("dict://", driver=driver, sleep=lambda _: None), failures


def test_parts_are_read_again_after_an_outage(broken):
    storage, failures = broken
    failures += [ClientPayloadError(), TimeoutError()]
    assert storage.read_parts("a", lambda file: (file.seek(4), file.read(3))) == (4, b"456")


def test_an_outage_that_lasts_is_no_damage(broken):
    storage, failures = broken
    failures += [TimeoutError("gone")] * 5
    with pytest.raises(StorageError, match=r"cannot read .*a: gone \(tried 5 times\)"):
        storage.read_parts("a", lambda file: file.read())


def test_what_is_wrong_with_the_content_is_told_as_it_is(broken):
    storage, _ = broken

    def judge(file):
        raise ValueError("its footer is wrong")

    with pytest.raises(ValueError, match="its footer is wrong"):
        storage.read_parts("a", judge)


def test_parts_of_a_missing_file_are_missing(broken):
    storage, _ = broken
    with pytest.raises(MissingFileError):
        storage.read_parts("b", lambda file: file.read())
