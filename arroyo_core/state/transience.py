"""Which failures of a store pass by themselves, and how long to wait for that."""

from __future__ import annotations

import errno
import random
from collections.abc import Mapping

_ERRNOS = {
    errno.EAGAIN,
    errno.EBUSY,
    errno.EINTR,
    errno.ETIMEDOUT,
    errno.ECONNRESET,
    errno.ECONNREFUSED,
    errno.EPIPE,
    getattr(errno, "EREMOTEIO", errno.ETIMEDOUT),
}
#: Failures of HTTP clients that do not derive from `ConnectionError` or `TimeoutError`.
_NAMES = {
    "ClientConnectionError",
    "ClientPayloadError",
    "ConnectTimeoutError",
    "ConnectionClosedError",
    "EndpointConnectionError",
    "FSTimeoutError",
    "HTTPClientError",
    "IncompleteRead",
    "IncompleteReadError",
    "ReadTimeoutError",
    "ResponseParserError",
    "ResponseStreamingError",
    "ServerDisconnectedError",
    "ServerTimeoutError",
    "ServiceRequestError",
    "ServiceResponseError",
}
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = range(500, 600)


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed a little later: an outage, not an answer."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionError | TimeoutError):
            return True
        if isinstance(cause, OSError) and cause.errno in _ERRNOS:
            return True
        if any(base.__name__ in _NAMES for base in type(cause).__mro__):
            return True
        status = _http_status(cause)
        if status is not None:
            return status == _TOO_MANY_REQUESTS or status in _SERVER_ERRORS
        cause = cause.__cause__
    return False


def backoff_s(attempt: int) -> float:
    """How long to wait after the given attempt, the first being 1.

    Jitter keeps subtasks that failed together from coming back together.
    """
    return 0.05 * float(2**attempt) * (0.5 + random.random() / 2)


def _http_status(error: BaseException) -> int | None:
    """The status of the response that an HTTP client's error carries; clients differ in where."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return found if isinstance(found, int) else None
    for name in ("status_code", "status", "code"):
        found = getattr(error, name, None)
        if isinstance(found, int):
            return found
    return None
