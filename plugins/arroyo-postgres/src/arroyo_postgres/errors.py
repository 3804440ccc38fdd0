"""What errors of the database mean: who can fix them, and whether another attempt can help."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError

if TYPE_CHECKING:
    import psycopg

#: Classes of SQLSTATE, their first two characters, of what may pass: connections, serialization failures, resources,
#: a server that shuts down or starts, errors of its system.
_PASSING_CLASSES = frozenset({"08", "40", "53", "57", "58"})
#: A replication slot, or another object, is in use; a lock was not to be had; after a failover the server is a standby;
#: a session that was idle in a transaction was ended.
_PASSING_STATES = frozenset({"55006", "55P03", "25006", "25P03"})
#: What is wrong with a config, by SQLSTATE or its class: the field to look at.
_CONFIG_FIELDS = {
    "28": "connection.user",
    "28P01": "connection.password",
    "3D000": "connection.database",
    "3F000": "table",
    "42P01": "table",
    "42602": "table",
    "42501": "connection.user",
}
#: Rows that the database does not take: a value that does not fit, a constraint.
_DATA_CLASSES = frozenset({"22", "23"})

#: A connection that is refused has no SQLSTATE, only a text. In another language than English these are not known, and
#: count as an outage: the job tries again, and shows the text.
_REFUSALS = (
    (re.compile(r"password authentication failed|no password supplied", re.IGNORECASE), "connection.password"),
    (re.compile(r'FATAL:  role "[^\n]*" does not exist|no pg_hba\.conf entry'), "connection.user"),
    (re.compile(r"permission denied for database|must be superuser or replication role"), "connection.user"),
    (re.compile(r'FATAL:  database "[^\n]*" does not exist'), "connection.database"),
    (re.compile(r"certificate verify failed|server certificate for"), "connection.sslrootcert"),
    (re.compile(r"root certificate file|root\.crt"), "connection.sslrootcert"),
    (
        re.compile(r"could not (?:open|load|read)? ?(?:client )?certificate file|certificate file \""),
        "connection.sslcert",
    ),
    (re.compile(r"private key file"), "connection.sslkey"),
    (re.compile(r"does not support SSL|SSL off"), "connection.sslmode"),
)


def translate(error: psycopg.Error, doing: str, redact: Callable[[str], str]) -> ArroyoError:
    """The error for people: what was done (`cannot read table 'orders'`), the reason, and who can fix it."""
    state = error.sqlstate or ""
    text = redact(_text(error))
    message = f"{doing}: {text} (SQLSTATE {state})" if state else f"{doing}: {text}"
    if not state:
        return _without_state(error, text, message)
    if state[:2] in _PASSING_CLASSES or state in _PASSING_STATES:
        return ExternalError(message)
    if state[:2] in _DATA_CLASSES:
        return DataError(message)
    return ConfigError(message, field=_CONFIG_FIELDS.get(state) or _CONFIG_FIELDS.get(state[:2]))


def _without_state(error: psycopg.Error, text: str, message: str) -> ArroyoError:
    import psycopg

    for pattern, field in _REFUSALS:
        if pattern.search(text):
            return ConfigError(message, field=field)
    if isinstance(error, psycopg.ProgrammingError):
        return ConfigError(message, field="connection")
    return ExternalError(message)


def _text(error: psycopg.Error) -> str:
    """The reason on one line, with the server's hint."""
    primary = error.diag.message_primary
    if primary is None:
        return "; ".join(line.strip() for line in str(error).splitlines() if line.strip()) or type(error).__name__
    parts = [primary, error.diag.message_detail, error.diag.message_hint]
    return "; ".join(part for part in parts if part)
