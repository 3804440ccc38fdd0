"""Tables as operators: `connector` and `type` name one, every other option is a field of its config.

A connector of any distribution works without code here, since what it takes is read from its config's message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from arroyo_core.errors import Location, PluginError
from arroyo_core.pipeline.config import read_config
from arroyo_core.pipeline.field_options import OptionError
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.plugin import PluginSet, known_elsewhere
from arroyo_sql.aliases import CONNECTORS, SINKS
from arroyo_sql.options import ConfigDraft
from arroyo_sql.places import Placed
from arroyo_sql.planned import Connection
from arroyo_sql.script import Table
from arroyo_sql.table_options import (
    CONNECTOR,
    TYPE,
    SourceColumns,
    TableOptions,
    physical_columns,
    put_schema,
    put_sink_keys,
)

__all__ = ["is_lookup", "is_memory", "is_sink", "is_source", "lookup_of", "physical_columns", "sink_of", "source_of"]

SOURCE, SINK, LOOKUP = "source", "sink", "lookup"
TYPES = (SOURCE, SINK, LOOKUP)
LOOKUP_JOIN = "std.lookup_join"


def is_memory(table: Table) -> bool:
    """Whether what is inserted into the table is what is read from it."""
    return not table.options


def table_type(table: Table) -> str | None:
    """What `type` says: source, sink or lookup; None where it says nothing."""
    option = table.options.get(TYPE)
    return option.value.lower() if option is not None and isinstance(option.value, str) else None


def is_source(table: Table, plugins: PluginSet) -> bool:
    """Whether the table says that it is a source, or has a connector with one."""
    declared = table_type(table)
    return declared == SOURCE or (declared is None and _operator(table, SOURCE, plugins) is not None)


def is_sink(table: Table, plugins: PluginSet) -> bool:
    """Whether the table says that it is a sink, or has a connector with one."""
    declared = table_type(table)
    return declared == SINK or (declared is None and _operator(table, SINK, plugins) is not None)


def is_lookup(table: Table) -> bool:
    """Whether rows of the table are looked up, and not streamed."""
    return table_type(table) == LOOKUP


def source_of(
    table: Table, *, plugins: PluginSet, mistakes: Mistakes, used_at: Location | None = None
) -> Connection | None:
    """The operator that reads the table; None after recording why there is none.

    `used_at` is where a statement reads it: the place of the mistake that it cannot be read.
    """
    return _connection(table, SOURCE, plugins, mistakes, used_at)


def sink_of(
    table: Table, *, plugins: PluginSet, mistakes: Mistakes, used_at: Location | None = None
) -> Connection | None:
    """The operator that writes the table, likewise."""
    return _connection(table, SINK, plugins, mistakes, used_at)


def lookup_of(
    table: Table, *, plugins: PluginSet, mistakes: Mistakes, used_at: Location | None = None
) -> Connection | None:
    """`std.lookup_join`, with the fields `table` and `cache` of its config; likewise."""
    connector = _connector(table, LOOKUP, plugins, mistakes, used_at)
    join = plugins.registry.constructors.get(LOOKUP_JOIN)
    if connector is None or join is None:
        return None
    fields = cast(Descriptor, join.config_type.DESCRIPTOR).fields_by_name
    name = f"{connector}.{LOOKUP}"
    constructor = plugins.registry.lookups.get(name)
    kind: type[Message] = (
        GetMessageClass(cast(Descriptor, fields["table"].message_type))
        if constructor is None
        else constructor.config_type
    )
    cache: type[Message] = GetMessageClass(cast(Descriptor, fields["cache"].message_type))
    own, cached = ConfigDraft(), ConfigDraft()
    at = table.options[CONNECTOR].at
    others = {key: option for key, option in table.options.items() if not key.startswith("cache.")}
    inner = {key.removeprefix("cache."): option for key, option in table.options.items() if key not in others}
    for draft, options, message in ((own, others, kind), (cached, inner, cache)):
        TableOptions(replace(table, options=options), name, message, draft, mistakes).fill()
    found = Mistakes()
    if not own.has("columns") and "columns" in kind.DESCRIPTOR.fields_by_name and table.columns:
        own.put(["columns"], [column.name for column in table.columns], table.at)
    if "schema" in kind.DESCRIPTOR.fields_by_name and table.columns:
        put_schema(table, own)
    _check(own, kind, at, f"table {table.name!r}", found)
    _check(cached, cache, at, f"the cache of table {table.name!r}", found)
    mistakes.extend(found)
    if found:
        return None
    if constructor is None:
        config: dict[str, Any] = {"table": own.config}
        prefix = "table."
    else:
        config = {"table": {"lookup": name, "config": own.config}}
        prefix = "table.config."
    if cached.config:
        config["cache"] = cached.config
    places = {f"{prefix}{path}": place for path, place in own.places.items()}
    places |= {f"cache.{path}": place for path, place in cached.places.items()}
    secrets = {f"{prefix}{path}": written for path, written in own.secrets.items()}
    return Connection(LOOKUP_JOIN, config, at, {"table": at, **places}, secrets)


def _connection(
    table: Table, kind: str, plugins: PluginSet, mistakes: Mistakes, used_at: Location | None
) -> Connection | None:
    connector = _connector(table, kind, plugins, mistakes, used_at)
    if connector is None:
        return None
    operator = _operator(table, kind, plugins)
    at = table.options[CONNECTOR].at
    if operator is None:
        _add_missing(table, connector, kind, plugins, mistakes)
        return None
    try:
        config_type = plugins.constructor(operator).config_type
    except PluginError as error:
        mistakes.add(error.message, at=at, value=connector)
        return None
    draft, found = ConfigDraft(), Mistakes()
    TableOptions(table, operator, config_type, draft, found).fill()
    if kind == SOURCE:
        SourceColumns(table, operator, cast(Descriptor, config_type.DESCRIPTOR), draft, found).fill()
    else:
        put_sink_keys(table, cast(Descriptor, config_type.DESCRIPTOR), draft)
    if not found:
        _check(draft, config_type, at, f"table {table.name!r} ({operator})", found)
    mistakes.extend(found)
    return None if found else Connection(operator, draft.config, at, draft.places, draft.secrets)


def _connector(table: Table, kind: str, plugins: PluginSet, mistakes: Mistakes, used_at: Location | None) -> str | None:
    option = table.options.get(CONNECTOR)
    if option is None:
        known = _known(kind, plugins)
        message = f"table {table.name!r} needs the option 'connector': WITH (connector = '...', ...)"
        mistakes.add(message, at=table.at, value=table.name, allowed=known)
        return None
    declared = table.options.get(TYPE)
    if declared is not None and table_type(table) not in TYPES:
        mistakes.add_unknown(
            "'type' is one of source, sink and lookup", at=declared.at, name=str(declared.value), choices=TYPES
        )
        return None
    if declared is not None and table_type(table) != kind:
        verb = {SOURCE: "read", SINK: "written", LOOKUP: "looked up"}[kind]
        message = f"table {table.name!r} is a {table_type(table)}: it cannot be {verb}"
        mistakes.add(message, at=used_at or declared.at, value=table.name if used_at else str(declared.value))
        return None
    if not isinstance(option.value, str):
        mistakes.add("'connector' is the name of a connector in quotes", at=option.at)
        return None
    return CONNECTORS.get(option.value.lower(), option.value.lower())


def _operator(table: Table, kind: str, plugins: PluginSet) -> str | None:
    option = table.options.get(CONNECTOR)
    if option is None or not isinstance(option.value, str):
        return None
    name = option.value.lower()
    connector = CONNECTORS.get(name, name)
    named = SINKS.get(connector) if kind == SINK else None
    candidates = [named] if named else [f"{connector}.{kind}", f"{connector}.input" if kind == SOURCE else ""]
    if "." in connector:
        candidates = [connector]
    known = {*plugins.registry.constructors, *plugins.conflicts}
    return next((candidate for candidate in candidates if candidate in known), None)


def _known(kind: str, plugins: PluginSet) -> tuple[str, ...]:
    """The connectors that have such an operator, by name."""
    if kind == LOOKUP:
        return ("filesystem", *sorted(name.removesuffix(f".{LOOKUP}") for name in plugins.registry.lookups))
    suffix = f".{kind}"
    found = {name.removesuffix(suffix) for name in plugins.registry.constructors if name.endswith(suffix)}
    if kind == SINK:
        found |= {"stdout", "blackhole"}
    return tuple(sorted(found))


def _add_missing(table: Table, connector: str, kind: str, plugins: PluginSet, mistakes: Mistakes) -> None:
    option = table.options[CONNECTOR]
    known = _known(kind, plugins)
    written = str(option.value)
    distribution = known_elsewhere("operators").get(connector)
    if distribution is not None and not any(name.startswith(f"{connector}.") for name in plugins.registry.constructors):
        message = f"connector {written!r} needs the plugin {distribution}, which is not installed"
        mistakes.add(f"{message}: pip install {distribution}", at=option.at, value=written)
        return
    other = SINK if kind == SOURCE else SOURCE
    if _operator(table, other, plugins) is not None:
        mistakes.add(f"connector {written!r} has no {kind}, only a {other}", at=option.at, value=written, allowed=known)
        return
    near = nearest(connector, [*known, *CONNECTORS])
    message = f"there is no connector {written!r} with a {kind}"
    mistakes.add(message, at=option.at, value=written, allowed=known, suggestion=near)


def _check(draft: ConfigDraft, kind: type[Message], at: Location, what: str, mistakes: Mistakes) -> None:
    document = Placed(at, draft.places, draft.secrets).value(draft.config)
    try:
        read_config(document, kind, at=at, what=what, mistakes=mistakes)
    except OptionError as error:
        mistakes.add(f"{what}: {error}", at=at)
