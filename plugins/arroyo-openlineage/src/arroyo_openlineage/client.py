"""The client of OpenLineage, made so that a catalogue gets what it is to get, and the process of a job keeps the rest.

By itself the client follows redirects with the event and the headers of its settings, reads answers to their end
whatever their size, and sends the address of a Git repository as it is in `.git/config`, with a token where that has
one, if it is to send one at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from openlineage.client import OpenLineageClient
from openlineage.client.git import get_git_repo_url
from openlineage.client.transport.http import HttpTransport
from requests import RequestException, Response, Session

from arroyo_core.api.urls import redact_url
from arroyo_core.errors import SetupError

_URL: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"`>]+")


def open_client(url: str | None) -> Any:
    """A client for that URL, or for what its own settings say. Raises `SetupError` for settings that it refuses."""
    config = {"transport": {"type": "http", "url": url}} if url else None
    try:
        client = OpenLineageClient(config=config)
        location = client.config.facets.source_code_location
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        # It quotes the URL, which may have no scheme.
        said = str(error).replace(url, url.rpartition("@")[2]) if url else str(error)
        raise SetupError(f"the client of OpenLineage refuses its settings: {without_secrets(said)}") from None
    if not location.disabled and location.repo_url is None:
        location.repo_url = redact_url(get_git_repo_url() or "") or None
    for transport in _http_transports(client.transport):
        transport.session = _DirectSession()
    return client


def without_secrets(text: str) -> str:
    """The text with no user, password or query in its URLs."""
    return _URL.sub(lambda found: redact_url(found.group()), text)


class _DirectSession(Session):
    """Sends to the address of its settings only, and reads no more of an answer than its head."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = True

    def get_redirect_target(self, resp: Response) -> str | None:
        target = super().get_redirect_target(resp)
        if target is not None:
            resp.close()
            raise RequestException(f"the catalogue sends to {target[:200]}, and redirects are not followed")
        return None


def _http_transports(transport: Any) -> Iterator[HttpTransport]:
    """Those of a composite one, too."""
    if isinstance(transport, HttpTransport):
        yield transport
    for each in getattr(transport, "transports", ()):
        yield from _http_transports(each)
    inner = getattr(transport, "transport", None)
    if inner is not None:
        yield from _http_transports(inner)
