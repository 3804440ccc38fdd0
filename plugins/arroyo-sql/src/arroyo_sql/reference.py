"""The tables of `docs/sql-reference.md`, from what the code knows: `python -m arroyo_sql.reference FILE` writes them.

A page has a table between `<!-- made: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from arroyo_std.json_functions import JSON_FUNCTIONS
from datafusion import SessionConfig, SessionContext

from arroyo_sql.aliases import CONNECTORS, FORMATS, OPTIONS, SINKS
from arroyo_sql.column_types import SIMPLE, UNSIGNED, sql_type, type_name
from arroyo_sql.planner.aggregates import FUNCTIONS
from arroyo_sql.settings import ALIASES, KNOWN

_TABLE = re.compile(r"(?P<head><!-- made: (?P<name>\w+) -->\n).*?(?P<tail><!-- end -->)", re.DOTALL)
#: Types that take others, or numbers.
_BUILT: Mapping[str, pa.DataType] = {
    "TIMESTAMP, TIMESTAMP(6), TIMESTAMPTZ, TIMESTAMP_LTZ, DATETIME": pa.timestamp("us", "UTC"),
    "TIMESTAMP(3), TIMESTAMP(9) and so on": pa.timestamp("ns", "UTC"),
    "DECIMAL(p, s), NUMERIC(p, s)": pa.decimal128(38, 10),
    "STRUCT<name TYPE, ...>, ROW<name TYPE, ...>": pa.struct({"name": pa.string()}),
    "TYPE[], ARRAY<TYPE>": pa.list_(pa.string()),
    "MAP<TYPE, TYPE>": pa.map_(pa.string(), pa.int64()),
}
#: Of the engine's functions: what pipelines have no use for, or what depends on the machine.
_LEFT_OUT = re.compile(r"^(?:arrow_\w+|version|get_field|named_struct|union_\w+|input_file_name|with_metadata)$")


def write(page: str) -> str:
    """The page with its tables as they should be; raises `KeyError` for a table that nobody makes."""
    return _TABLE.sub(lambda match: f"{match['head']}{TABLES[match['name']]()}\n{match['tail']}", page)


def _types() -> str:
    names: dict[pa.DataType, list[str]] = {}
    for name, kind in SIMPLE.items():
        names.setdefault(kind, []).append(name.upper())
    names |= {unsigned: [f"{sql_type(kind)} UNSIGNED"] for kind, unsigned in UNSIGNED.items()}
    rows = [(", ".join(spelled), f"`{type_name(kind)}`", f"`{kind}`") for kind, spelled in names.items()]
    rows += [(spelled, f"`{type_name(kind)}`", f"`{kind}`") for spelled, kind in _BUILT.items()]
    return _table(("In a script", "In YAML", "In Arrow"), ((f"`{each[0]}`", *each[1:]) for each in rows))


def _settings() -> str:
    former: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        former.setdefault(name, []).append(f"`{alias}`")
    return _table(("Setting", "Also called"), ((f"`{name}`", ", ".join(former.get(name, ()))) for name in KNOWN))


def _connectors() -> str:
    rows = [(f"`{name}`", f"`{meant}`") for name, meant in [*CONNECTORS.items(), *SINKS.items(), *FORMATS.items()]]
    for operator, options in OPTIONS.items():
        rows += [(f"`{name}` of `{operator}`", f"`{alias.path}`") for name, alias in options.items()]
    return _table(("Name", "Means"), rows)


def _aggregates() -> str:
    by_function: dict[str, list[str]] = {}
    for name, function in FUNCTIONS.items():
        by_function.setdefault(function, []).append(f"`{name}()`")
    return _table(("In SQL", "In YAML"), ((", ".join(names), f"`{each}`") for each, names in by_function.items()))


def _scalars() -> str:
    rows = [(f"`{syntax or name}`", described) for name, syntax, described in _routines() if not _LEFT_OUT.match(name)]
    return _table(("Function", "What it gives"), rows)


def _json() -> str:
    return _table(
        ("Function", "What it gives"), ((f"`{each.signature}`", each.description) for each in JSON_FUNCTIONS.values())
    )


TABLES: Mapping[str, Callable[[], str]] = {
    "types": _types,
    "settings": _settings,
    "names": _connectors,
    "aggregates": _aggregates,
    "functions": _scalars,
    "json": _json,
}


def _routines() -> Iterable[tuple[str, str, str]]:
    """Name, syntax and first sentence of every scalar function of the engine, by name."""
    context = SessionContext(SessionConfig({"datafusion.catalog.information_schema": "true"}))
    query = (
        "SELECT DISTINCT routine_name AS name, syntax_example AS syntax, description FROM information_schema.routines "
        "WHERE function_type = 'SCALAR' ORDER BY name"
    )
    seen: set[str] = set()
    for row in context.sql(query).to_arrow_table().to_pylist():
        if row["name"] not in seen:
            seen.add(row["name"])
            sentence = re.split(r"(?<=\w)\.(?:\s|$)|\n", (row["description"] or "").strip())[0].strip()
            yield row["name"], (row["syntax"] or "").split("\n")[0].strip(), sentence


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)])


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(write(file.read_text(encoding="utf-8")), encoding="utf-8")
