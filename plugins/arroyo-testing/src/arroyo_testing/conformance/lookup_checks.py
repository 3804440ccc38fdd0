"""The checks of tables that rows are looked up in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import KeyedLookupTable, LookupSource, LookupTable, Registry
from arroyo_core.errors import ArroyoError, DataError
from arroyo_testing.conformance.cases import LookupCase, Stream, case_name
from arroyo_testing.conformance.configs import read_message
from arroyo_testing.conformance.faults import ConformanceError, NotApplicable, failure_of, shown
from arroyo_testing.conformance.rows import difference, outcome_of
from arroyo_testing.conformance.subject import empty_folder, resolve

#: More keys than a query has parameters, in databases that count them.
MANY_KEYS = 70_000


def check_lookup_describes_itself(case: LookupCase, registry: Registry) -> None:
    """It has a name; tables of one config have one key of a cache."""
    with _opened(case, registry) as make:
        first, second = make(), make()
        if not isinstance(first, LookupTable | KeyedLookupTable):
            raise ConformanceError(
                f"{type(first).__name__} is neither a LookupTable nor a KeyedLookupTable: no join can ask it"
            )
        name = first.name()
        if not isinstance(name, str) or not name.strip():
            raise ConformanceError(
                f"{type(first).__name__}.name() is {name!r}: say what plans and errors call the table"
            )
        try:
            are_same = hash(first.cache_key()) == hash(second.cache_key()) and first.cache_key() == second.cache_key()
        except TypeError as error:
            raise ConformanceError(f"{type(first).__name__}.cache_key() cannot be hashed: {error}") from error
        if not are_same:
            raise ConformanceError(
                f"{type(first).__name__}.cache_key() is {shown(first.cache_key())}, and "
                f"{shown(second.cache_key())} when it is made of the same config again: the table would be read or "
                "asked again by every task"
            )


def check_lookup_leaves_its_config(case: LookupCase, registry: Registry) -> None:
    """`resolve` returns a copy, and once resolved is resolved; `with_config` only reads."""
    with empty_folder() as folder:
        constructor = registry.lookup(case.lookup)
        given = read_message(case.lookup, resolve(case.config, folder), constructor.config_type, registry)
        before = given.SerializeToString(deterministic=True)
        resolved = constructor.resolve(given)
        if given.SerializeToString(deterministic=True) != before:
            raise ConformanceError(f"resolve() of {case.lookup} changes its config: return a copy")
        after = resolved.SerializeToString(deterministic=True)
        constructor.with_config(resolved, registry)
        if resolved.SerializeToString(deterministic=True) != after:
            raise ConformanceError(f"with_config() of {case.lookup} changes its config: it may only read it")


def check_lookup_schema(case: LookupCase, registry: Registry) -> None:
    """The columns are those of the rows, whenever it is asked for them."""
    with _opened(case, registry) as make:
        table = make()
        for _ in range(2):
            found = {field.name: field.type for field in table.schema()}
            wanted = {field.name: field.type for field in case.rows.schema}
            if found != wanted:
                raise ConformanceError(
                    f"{case_name(case)} has the columns {shown(found)}, and its rows have {shown(wanted)}"
                )


def check_lookup_finds_all_rows(case: LookupCase, registry: Registry) -> None:
    """Every row is there: read as a whole, or asked for by all keys at once and by each alone; and again."""
    with _opened(case, registry) as make:
        table = make()
        schema = table.schema()
        for _ in range(2):
            if isinstance(table, LookupTable):
                _compare(case, _rows(case), table.read(schema, sys.maxsize), "when it is read")
            elif isinstance(table, KeyedLookupTable):
                keys = _keys(case, schema)
                table.check_keys(case.keys)
                _compare(case, _with_keys(case), _asked(case, table, keys), "when it is asked for all keys at once")
                for place in range(keys.num_rows):
                    key = keys.slice(place, 1)
                    how = f"when it is asked for {shown(key.to_pylist()[0])}"
                    _compare(case, _of_keys(_with_keys(case), key), _asked(case, table, key), how)


def check_lookup_knows_what_is_not_there(case: LookupCase, registry: Registry) -> None:
    """A key without a row gives no row, beside others and alone."""
    with _opened(case, registry) as make:
        table = _keyed(make())
        schema = table.schema()
        other = _others(case, schema, 3)
        _compare(case, _rows(case).slice(0, 0), _asked(case, table, other), "when it is asked for keys that it has not")
        both = pa.concat_tables([other, _keys(case, schema)])
        _compare(case, _with_keys(case), _asked(case, table, both), "when other keys are among those that it has")


def check_lookup_takes_many_keys(case: LookupCase, registry: Registry) -> None:
    """As many keys as a batch may have are asked for in parts, where a query has a limit."""
    with _opened(case, registry) as make:
        table = _keyed(make())
        keys = _keys(case, table.schema())
        others = _others(case, table.schema(), MANY_KEYS)
        half = MANY_KEYS // 2
        many = pa.concat_tables([others.slice(0, half), keys, others.slice(half)])
        _compare(case, _with_keys(case), _asked(case, table, many), f"when it is asked for {many.num_rows} keys")


def check_lookup_has_a_limit(case: LookupCase, registry: Registry) -> None:
    """A table that is larger than it may be is refused, and does not fill the memory."""
    with _opened(case, registry) as make:
        table = make()
        if not isinstance(table, LookupTable):
            raise NotApplicable("it is asked by key")
        try:
            table.read(table.schema(), 1)
        except DataError:
            return
    raise ConformanceError(
        f"{type(table).__name__}.read() returns more than max_bytes: raise a DataError as soon as there is more"
    )


LOOKUP_CHECKS: Mapping[str, Callable[[LookupCase, Registry], None]] = {
    "describes_itself": check_lookup_describes_itself,
    "leaves_its_config": check_lookup_leaves_its_config,
    "schema": check_lookup_schema,
    "finds_all_rows": check_lookup_finds_all_rows,
    "knows_what_is_not_there": check_lookup_knows_what_is_not_there,
    "takes_many_keys": check_lookup_takes_many_keys,
    "has_a_limit": check_lookup_has_a_limit,
}


@contextmanager
def _opened(case: LookupCase, registry: Registry) -> Iterator[Callable[[], LookupSource]]:
    """Makes the table again and again, of the config as it is resolved once, as tasks do."""
    with empty_folder() as folder:
        try:
            constructor = registry.lookup(case.lookup)
            message = read_message(case.lookup, resolve(case.config, folder), constructor.config_type, registry)
            data = constructor.resolve(message).SerializeToString()
            yield lambda: constructor.with_config(constructor.config_type.FromString(data), registry)
        except ArroyoError as error:
            raise failure_of(case_name(case), "while rows are looked up", error) from error


def _keyed(table: LookupSource) -> KeyedLookupTable:
    if not isinstance(table, KeyedLookupTable):
        raise NotApplicable("it is read as a whole")
    return table


def _asked(case: LookupCase, table: KeyedLookupTable, keys: pa.Table) -> pa.Table:
    found = table.find(keys, table.schema())
    if found.schema.names != table.schema().names or found.schema.types != table.schema().types:
        raise ConformanceError(
            f"{type(table).__name__}.find() gives {shown(found.schema)}, and was asked for {shown(table.schema())}"
        )
    # Rows of other keys may come, too.
    return _of_keys(found, keys)


def _compare(case: LookupCase, expected: pa.Table, got: pa.Table, how: str) -> None:
    problem = difference(outcome_of(expected, ignore=case.ignore), outcome_of(got, ignore=case.ignore))
    if problem is not None:
        raise ConformanceError(f"{case_name(case)} has other rows {how}: {problem}")


def _rows(case: LookupCase) -> pa.Table:
    return pa.Table.from_batches([Stream(case.rows).batch])


def _with_keys(case: LookupCase) -> pa.Table:
    """The rows that can be found: NULL is the key of none."""
    rows = _rows(case)
    for name in case.keys:
        rows = rows.filter(pc.is_valid(rows.column(name)))
    return rows


def _keys(case: LookupCase, schema: pa.Schema) -> pa.Table:
    """Each key once."""
    if not case.keys:
        raise ConformanceError(f"{case_name(case)} is asked by key: name columns of its rows as keys")
    keys = _with_keys(case).select(list(case.keys))
    return keys.group_by(list(case.keys), use_threads=False).aggregate([]).cast(_key_schema(case, schema))


def _of_keys(rows: pa.Table, keys: pa.Table) -> pa.Table:
    wanted = {tuple(key.values()) for key in keys.to_pylist()}
    columns = [rows.column(name).to_pylist() for name in keys.schema.names]
    return rows.filter(pa.array([key in wanted for key in zip(*columns, strict=True)], pa.bool_()))


def _others(case: LookupCase, schema: pa.Schema, count: int) -> pa.Table:
    """Keys that no row has."""
    columns = []
    for field in _key_schema(case, schema):
        known = set(_rows(case).column(field.name).to_pylist())
        if pa.types.is_integer(field.type):
            candidates: Iterator[object] = (number for number in range(1_000_000, 2_000_000) if number not in known)
        elif pa.types.is_string(field.type):
            candidates = (text for text in (f"none {number}" for number in range(1_000_000)) if text not in known)
        else:
            raise NotApplicable(f"the kit makes no keys of {field.type}")
        try:
            columns.append(pa.array([next(candidates) for _ in range(count)], field.type))
        except (pa.ArrowInvalid, OverflowError):
            raise NotApplicable(f"{field.type} has not so many values") from None
    return pa.table(columns, schema=_key_schema(case, schema))


def _key_schema(case: LookupCase, schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(name, schema.field(name).type) for name in case.keys])
