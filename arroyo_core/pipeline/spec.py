"""Reads a pipeline file, by the keys that `file_keys.py` defines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import Location
from arroyo_core.pipeline import sections as plugin_sections
from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue, describe, is_unresolved, shown
from arroyo_core.pipeline.file_keys import (
    CHECKPOINT,
    NODE,
    UDF,
    Duration,
    Form,
    Other,
    Part,
    Section,
    Size,
    Text,
    Whole,
)
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.plan import CheckpointSpec
from arroyo_core.pipeline.values import read_duration_us, read_int, read_size, read_string


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """The output of a node: `id`, or `id.output` for one of its side outputs."""

    id: str
    at: Location
    output: str | None = None

    def __str__(self) -> str:
        return self.id if self.output is None else f"{self.id}.{self.output}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One node as written. `operator` is None where the key is missing or no string."""

    id: str
    at: Location
    #: False where no id was written: `id` then is a stand-in such as `nodes[2]`.
    is_named: bool
    operator: str | None
    operator_at: Location
    inputs: tuple[InputSpec, ...]
    inputs_at: Location
    #: False where `inputs` could not be read, so that nothing may be concluded from it.
    has_valid_inputs: bool
    config: YamlValue | None
    parallelism: int | None
    #: The id that the node had before.
    was: str | None = None
    was_at: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UdfSpec:
    """One bundle of user functions as written; `shown_url` holds no values of the environment."""

    at: Location
    #: Not in the repr: a URL may carry a password.
    url: str = field(repr=False)
    shown_url: str
    url_at: Location
    sha256: str | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """A pipeline as written; `shown_name` and `shown_url` hold no values of the environment."""

    name: str
    shown_name: str
    parallelism: int
    checkpoint: CheckpointSpec
    shown_url: str | None
    nodes: tuple[NodeSpec, ...]
    udfs: tuple[UdfSpec, ...] = ()
    execution: str = "jobs"


@dataclass(frozen=True, slots=True)
class _Written:
    """What is written in a section of the file, by key; whatever is wrong with it is recorded."""

    section: Section
    entries: Mapping[str, Entry]
    mistakes: Mistakes

    def value(self, name: str) -> YamlValue | None:
        """The value of a key; a key without a value counts as not written."""
        entry = self.entries.get(name)
        if entry is None or (isinstance(entry.value, Scalar) and entry.value.is_null):
            return None
        return entry.value

    def read(self, name: str) -> Any:
        """What a key holds, its default where nothing that can be read is written."""
        key, value = self.section.key(name), self.value(name)
        found = read_form(key.form, value, repr(name), self.mistakes) if value is not None else None
        return key.default if found is None else found


def read_spec(
    root: YamlValue, mistakes: Mistakes, *, sections: Mapping[str, plugin_sections.Section] = MappingProxyType({})
) -> PipelineSpec:
    """What can be read of a pipeline; whatever is wrong is recorded and replaced by a default."""
    written = _read_section(root, "a pipeline", plugin_sections.pipeline_keys(sections), mistakes)
    for key, section in sections.items():
        if written.value(key) is not None:
            section.check(written.entries[key], mistakes)
    name, checkpoint = written.value("name"), written.value("checkpoint")
    url = checkpoint.entry("url") if isinstance(checkpoint, YamlMap) else None
    return PipelineSpec(
        name=written.read("name") or "",
        shown_name=shown(name) if name else "",
        parallelism=written.read("parallelism"),
        checkpoint=_read_checkpoint(checkpoint, mistakes),
        shown_url=shown(url.value) if url else None,
        nodes=_read_nodes(written.entries.get("nodes"), mistakes),
        udfs=_read_udfs(written.value("udfs"), mistakes),
        execution=written.read("execution"),
    )


def _read_section(value: YamlValue, what: str, section: Section, mistakes: Mistakes) -> _Written:
    """The known entries of a mapping."""
    keys = section.names
    if is_unresolved(value):
        return _Written(section, {}, mistakes)
    if not isinstance(value, YamlMap):
        message = f"{what} must be a mapping with the keys {', '.join(keys)}, not {describe(value)}"
        mistakes.add(message, at=value.at, value=shown(value))
        return _Written(section, {}, mistakes)
    unknown = [entry for entry in value.entries if entry.key not in keys]
    for entry in unknown:
        mistakes.add_unknown(f"{what} has no key {entry.key!r}", at=entry.key_at, name=entry.key, choices=keys)
    # A misspelled key is one mistake, not two.
    meant = {nearest(entry.key, keys) for entry in unknown}
    for key in section.required:
        if value.entry(key) is None and key not in meant:
            mistakes.add(f"{what} needs the key {key!r}", at=value.at)
    return _Written(section, {entry.key: entry for entry in value.entries if entry.key in keys}, mistakes)


def read_form(form: Form, value: YamlValue, what: str, mistakes: Mistakes) -> Any:
    """What a value of this form means; None after recording that it is not one."""
    match form:
        case Text():
            return _read_text(form, value, what, mistakes)
        case Whole(least, greatest):
            return read_int(value, what, mistakes, least=least, greatest=greatest)
        case Duration(least_us):
            duration_us = read_duration_us(value, what, mistakes)
            if duration_us is None or duration_us >= least_us:
                return duration_us
            least_text = format_duration_us(least_us)
        case Size(least):
            size = read_size(value, what, mistakes)
            if size is None or size >= least:
                return size
            least_text = str(least)
        case Part() | Other():
            raise TypeError(f"{what} has a reader of its own")
    mistakes.add(f"{what} must be at least {least_text}", at=value.at, value=shown(value))
    return None


def _read_text(form: Text, value: YamlValue, what: str, mistakes: Mistakes) -> str | None:
    text = _read_fixed(value, what, mistakes) if form.is_fixed else read_string(value, what, mistakes)
    if text is None:
        return None
    if form.is_filled and not text.strip():
        mistakes.add(f"{what} must not be empty", at=value.at)
    if form.pattern is not None and not form.pattern.fullmatch(text):
        suggestion = _cleaned(value, form.forbidden) if form.forbidden else None
        mistakes.add(form.mistake, at=value.at, value=shown(value), suggestion=suggestion)
    return text


def _read_checkpoint(value: YamlValue | None, mistakes: Mistakes) -> CheckpointSpec:
    if value is None:
        return CheckpointSpec()
    written = _read_section(value, "'checkpoint'", CHECKPOINT, mistakes)
    return CheckpointSpec(
        url=written.read("url"),
        interval_ms=written.read("interval") // 1_000,
        rows=written.read("rows"),
        bytes=written.read("bytes"),
        keep=written.read("keep"),
        timeout_ms=written.read("timeout") // 1_000,
    )


def _read_udfs(value: YamlValue | None, mistakes: Mistakes) -> tuple[UdfSpec, ...]:
    if value is None or is_unresolved(value):
        return ()
    if not isinstance(value, YamlList):
        keys = ", ".join(UDF.names)
        mistakes.add(f"'udfs' must be a list of {{{keys}}}, not {describe(value)}", at=value.at, value=shown(value))
        return ()
    found = [_read_udf(item, f"udfs[{index}]", mistakes) for index, item in enumerate(value.items)]
    return tuple(spec for spec in found if spec is not None)


def _read_udf(value: YamlValue, place: str, mistakes: Mistakes) -> UdfSpec | None:
    entries = _read_section(value, place, UDF, mistakes).entries
    found = Mistakes()
    written = _Written(UDF, entries, found)
    url, sha256, alias = (written.read(name) for name in UDF.names)
    url_value = written.value("url")
    if url_value is None and "url" in entries:
        found.add(f"'url' of {place} must not be empty", at=entries["url"].key_at)
    mistakes.extend(found)
    if found or url_value is None or url is None:
        return None
    return UdfSpec(
        at=value.at,
        url=url,
        shown_url=shown(url_value),
        url_at=url_value.at,
        sha256=sha256.lower() if sha256 else None,
        alias=alias,
    )


def _read_nodes(entry: Entry | None, mistakes: Mistakes) -> tuple[NodeSpec, ...]:
    if entry is None or is_unresolved(entry.value):
        return ()
    value = entry.value
    is_null = isinstance(value, Scalar) and value.is_null
    if not isinstance(value, YamlList) and not is_null:
        mistakes.add(f"'nodes' must be a list of nodes, not {describe(value)}", at=value.at, value=shown(value))
        return ()
    if not isinstance(value, YamlList) or not value.items:
        mistakes.add("'nodes' is empty: a pipeline needs at least a source and a sink", at=entry.key_at)
        return ()
    return tuple(_read_node(item, index, mistakes) for index, item in enumerate(value.items))


def _read_node(value: YamlValue, index: int, mistakes: Mistakes) -> NodeSpec:
    place = f"nodes[{index}]"
    written = _read_section(value, place, NODE, mistakes)
    id_value, operator = written.entries.get("id"), written.entries.get("operator")
    # Also where it is null: a node needs an id.
    found = read_form(NODE.key("id").form, id_value.value, "'id'", mistakes) if id_value else None
    node_id: str | None = found or None
    inputs, was = written.value("inputs"), written.value("was")
    read = _read_inputs(inputs, mistakes) if inputs else ()
    return NodeSpec(
        id=node_id or place,
        at=id_value.value.at if id_value else value.at,
        is_named=node_id is not None,
        operator=_read_fixed(operator.value, "'operator'", mistakes) if operator else None,
        operator_at=operator.value.at if operator else value.at,
        inputs=tuple(item for item in read if item is not None),
        inputs_at=inputs.at if inputs else (id_value.value.at if id_value else value.at),
        has_valid_inputs=None not in read and not is_unresolved(value),
        config=written.value("config"),
        parallelism=written.read("parallelism"),
        was=written.read("was"),
        was_at=was.at if was else None,
    )


def _read_inputs(value: YamlValue, mistakes: Mistakes) -> tuple[InputSpec | None, ...]:
    """None stands for an input that cannot be read."""
    if isinstance(value, YamlMap):
        mistakes.add("'inputs' must be a list of node ids, not a mapping", at=value.at)
        return (None,)
    items = value.items if isinstance(value, YamlList) else (value,)
    ids = [_read_fixed(item, "an input", mistakes) for item in items]
    return tuple(_input(found, item.at) if found is not None else None for found, item in zip(ids, items, strict=True))


def _input(text: str, at: Location) -> InputSpec:
    # No id has a dot in it.
    node_id, dot, output = text.partition(".")
    return InputSpec(id=node_id, at=at, output=output if dot else None)


def _read_fixed(value: YamlValue, what: str, mistakes: Mistakes) -> str | None:
    """A string that decides the shape of the graph, which must not depend on the environment."""
    if isinstance(value, Scalar) and value.is_substituted:
        mistakes.add(f"{what} cannot be read from the environment", at=value.at, value=shown(value))
        return None
    return read_string(value, what, mistakes)


def _cleaned(value: YamlValue, forbidden: str) -> str | None:
    if not isinstance(value, Scalar) or value.is_substituted:
        return None
    cleaned = re.sub(forbidden, "_", value.written.strip())
    return cleaned if cleaned.strip("._-") else None
