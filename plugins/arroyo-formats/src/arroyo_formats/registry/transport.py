"""Requests to a schema registry: authentication, TLS, patience with what passes."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ConfigError, ExternalError
from arroyo_core.state import backoff_s
from arroyo_formats.limits import REGISTRY_BYTES

ATTEMPTS = 4
#: What of a refusal is read, which is shown.
REFUSAL_BYTES = 2**16
#: What passes: too many requests, and what proxies and servers answer that are starting or overloaded.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
#: Codes of OpenSSL for a certificate that none of the authorities has signed, be it that one has the name of another.
_UNKNOWN_AUTHORITY = frozenset({7, 18, 19, 20, 21})
_TYPE = "application/vnd.schemaregistry.v1+json"


class AnswerError(Exception):
    """The registry refused a request, and would again. `code` is its own, more exact than the status of HTTP."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Transport:
    """Sends requests to the first of the addresses that answers.

    Credentials are in no message: a request is described by its method, address and path.
    """

    urls: Sequence[str]
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)
    timeout_s: float = 10.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer; raises `AnswerError`, `ExternalError` for an outage, `ConfigError` for refused credentials."""
        current_policy().check_network(f"the schema registry {', '.join(self.urls)}", field="registry.url")
        opener = self._opener()
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            for url in self.urls:
                try:
                    return self._send_once(opener, method, url + path, body)
                except urllib.error.HTTPError as error:
                    self._raise_lasting(error, url)
                    problem = f"{method} {url}{path}: {error.code} {error.reason}"
                except ssl.SSLCertVerificationError as error:
                    raise _untrusted(url, error) from error
                except urllib.error.URLError as error:
                    if isinstance(error.reason, ssl.SSLCertVerificationError):
                        raise _untrusted(url, error.reason) from error
                    problem = f"{method} {url}{path}: {error.reason}"
                except (OSError, http.client.HTTPException, ValueError) as error:
                    problem = f"{method} {url}{path}: {error or type(error).__name__}"
            if attempt < ATTEMPTS:
                self.sleep(backoff_s(attempt))
        raise ExternalError(f"the schema registry does not answer: {problem} (tried {ATTEMPTS} times)")

    def _send_once(self, opener: Any, method: str, url: str, body: Mapping[str, Any] | None) -> Any:
        headers = {"Accept": f"{_TYPE}, application/json", **self._authorization()}
        data = None
        if body is not None:
            headers["Content-Type"] = _TYPE
            data = json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        with opener.open(request, timeout=self.timeout_s) as answer:
            content = answer.read(REGISTRY_BYTES.value + 1)
        if len(content) > REGISTRY_BYTES.value:
            raise ExternalError(
                f"the answer of the schema registry to {method} {url} is too large: {REGISTRY_BYTES.hint}"
            )
        try:
            return json.loads(content)
        except RecursionError as error:
            raise ValueError("the answer is nested too deep") from error

    def _raise_lasting(self, error: urllib.error.HTTPError, url: str) -> None:
        """Returns where the same request may work later."""
        with error:
            answer = _said(error)
        if error.code in (401, 403):
            who = (
                f"user {self.username!r}"
                if self.username
                else "the token"
                if self.token
                else "requests without credentials"
            )
            raise ConfigError(
                f"the schema registry {url} refuses {who}: {answer['message']}",
                field="registry.token" if self.token else "registry.username",
            ) from error
        if error.code not in _PASSING:
            raise AnswerError(error.code, answer["error_code"], answer["message"]) from error

    def _authorization(self) -> Mapping[str, str]:
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if self.username:
            pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}

    def _opener(self) -> urllib.request.OpenerDirector:
        context = ssl.create_default_context(cadata=self.ca or None)
        return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects())


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry credentials to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _said(error: urllib.error.HTTPError) -> dict[str, Any]:
    try:
        found = json.loads(error.read(REFUSAL_BYTES))
        return {"error_code": int(found["error_code"]), "message": str(found["message"])}
    except (ValueError, KeyError, TypeError, RecursionError, OSError, http.client.HTTPException):
        return {"error_code": error.code, "message": str(error.reason)}


def _untrusted(url: str, error: ssl.SSLCertVerificationError) -> ConfigError:
    advice = ": give the authority that signed it as ca_file" if error.verify_code in _UNKNOWN_AUTHORITY else ""
    return ConfigError(
        f"the certificate of the schema registry {url} is not trusted ({error.verify_message}){advice}",
        field="registry.ca_file",
    )
