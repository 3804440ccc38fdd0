"""Fork: a new job that begins with another job's checkpoint."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from arroyo_core.state.failures import ForkError

#: What may follow the URL; a job's name is the pipeline's, see `name` in a pipeline file.
_JOB = re.compile(r"(?P<job>[A-Za-z0-9_.-]+)(@(?P<epoch>[1-9][0-9]{0,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSource:
    """A checkpoint of some job: the newest committed one where `epoch` is None."""

    #: Not in the repr: a URL may carry a password.
    url: str = field(repr=False)
    #: None for the job of the same name.
    job_id: str | None = None
    epoch: int | None = None

    @classmethod
    def parse(cls, text: str) -> ForkSource:
        """Read `URL[#JOB[@EPOCH]]`; raises `ForkError` for anything else."""
        url, sharp, rest = text.rpartition("#")
        if not sharp:
            url, rest = text, ""
        found = _JOB.fullmatch(rest) if sharp else None
        if not url or (sharp and found is None):
            raise ForkError(f"{redact_url(text)!r} names no checkpoint: write URL, URL#JOB or URL#JOB@EPOCH")
        if found is None:
            return cls(url=url)
        return cls(url=url, job_id=found["job"], epoch=int(found["epoch"]) if found["epoch"] else None)


def redact_url(url: str) -> str:
    """The URL without user, password and query, as it may be shown and stored."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", parts.fragment))
