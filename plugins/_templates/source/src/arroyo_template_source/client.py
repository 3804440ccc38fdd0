"""The feed over HTTP: what may be asked, and which failures may pass by themselves."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from arroyo_core.errors import ArroyoError, Domain, ExternalError

#: No call waits longer: a source that does not ask `ctx.control()` for long is taken for stuck.
TIMEOUT_S = 10.0


class RefusedError(ArroyoError):
    """The feed does not want this request, and will not want it later."""

    domain = Domain.USER


class BusyError(ExternalError):
    """The feed wants to be asked less often: not before `wait_s` seconds have passed."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class FeedClient:
    """Each call opens a connection, and closes it: nothing has to be released."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def partitions(self) -> list[str]:
        """The names of all partitions there are now; more may come."""
        return [str(name) for name in self._get("/partitions")]

    def lines(self, partition: str, position: int, limit: int) -> list[str]:
        """At most `limit` lines from this number on; none where there are no more yet."""
        query = urllib.parse.urlencode({"from": position, "limit": limit})
        return [str(line) for line in self._get(f"/partitions/{urllib.parse.quote(partition, safe='')}?{query}")]

    def _get(self, path: str) -> Any:
        """What the feed answers. Raises `RefusedError`, or what a retry may help: `ExternalError`, an `OSError`."""
        request = urllib.request.Request(self._url + path, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise _named(error, self._url) from error
        except urllib.error.URLError as error:
            raise ExternalError(f"{self._url} cannot be reached: {error.reason}") from error


def _named(error: urllib.error.HTTPError, url: str) -> ArroyoError:
    what = f"{url} answers {error.code} ({error.reason})"
    if error.code == 429:
        wait = error.headers.get("Retry-After", "")
        return BusyError(what, float(wait) if wait.isdigit() else 1.0)
    return ExternalError(what) if error.code >= 500 or error.code == 408 else RefusedError(what)
