"""What errors of the database mean: who can fix them, and whether another attempt can help."""

from __future__ import annotations

import re
from collections.abc import Callable

from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError

#: What may pass, by the server's and the client's numbers of errors.
_PASSING = frozenset(
    {2001, 2002, 2003, 2005, 2006, 2013, 2014, 2055, 4031}  # there is no connection, or it broke
    | {
        1020,
        1180,
        1205,
        1213,
        1412,
        1613,
        3101,
        3572,
    }  # somebody else was there: deadlocks, locks that were not to be had
    | {1021, 1037, 1038, 1040, 1041, 1114, 1129, 1135, 1203, 1206, 1226}  # too little of something
    | {1047, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184}  # the server goes, or a cluster is not ready
    | {1290, 1836, 3100}  # after a failover the server is a replica
    | {1317, 1927, 1969, 3024, 3169}  # the session or its statement was ended
)
#: Rows that the database does not take: a value that does not fit, a constraint.
_DATA = frozenset(
    {1048, 1062, 1153, 1216, 1217, 1264, 1265, 1292, 1364, 1365, 1366, 1367, 1369, 1406, 1411, 1416, 1442, 1451, 1452}
    | {1526, 1557, 1586, 1644, 1690, 1748, 1761, 1762, 3140, 3141, 3819, 3854, 4025, 4078}
)
#: What is wrong with a config: the field to look at.
_CONFIG_FIELDS = {
    1044: "connection.user",
    1045: "connection.password",
    1049: "connection.database",
    1060: "query",
    1064: "query",
    1130: "connection.user",
    1142: "connection.user",
    1143: "connection.user",
    1146: "table",
    1227: "connection.user",
    1370: "connection.user",
    1698: "connection.user",
    2026: "connection.sslmode",
    3159: "connection.sslmode",
}
#: A connection that is refused by the client has no number of its own, only a text.
_REFUSALS = (
    (re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|doesn't match|not valid for"), "sslrootcert"),
    (re.compile(r"(?i)SSL is required|WRONG_VERSION_NUMBER|HANDSHAKE_FAILURE"), "sslmode"),
)
_BINLOG = 1665


def translate(error: Exception, doing: str, redact: Callable[[str], str]) -> ArroyoError:
    """The error for people: what was done (`cannot read table 'orders'`), the reason, and who can fix it."""
    import pymysql

    number = error_number(error)
    text = redact(_text(error))
    message = f"{doing}: {text} (error {number})" if number else f"{doing}: {text}"
    for pattern, field in _REFUSALS:
        if pattern.search(text):
            return ConfigError(message, field=f"connection.{field}")
    if number in _PASSING or (not number and isinstance(error, pymysql.InterfaceError)):
        return ExternalError(message)
    if number in _DATA:
        return DataError(message)
    if number == _BINLOG:
        return ConfigError(f"{message}; the server's binlog_format must be MIXED or ROW", field="connection")
    if not number and not isinstance(error, RuntimeError):
        # A packet that was cut off, or came in the wrong order: the connection is of no use any more.
        return ExternalError(message)
    return ConfigError(message, field=_CONFIG_FIELDS.get(number, "connection" if not number else None))


def error_number(error: Exception) -> int:
    """The number of an error; 0 where it has none."""
    first = error.args[0] if error.args else 0
    return first if isinstance(first, int) else 0


def _text(error: Exception) -> str:
    """The reason on one line."""
    parts = [str(part) for part in error.args if isinstance(part, str) and part.strip()]
    return "; ".join(" ".join(part.split()) for part in parts) or type(error).__name__
