"""The shape of a pipeline file: which keys there are and what they may hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import Location
from arroyo_core.graph.document import Entry, Scalar, YamlList, YamlMap, YamlValue, describe, is_unresolved, shown
from arroyo_core.graph.mistakes import Mistakes, nearest
from arroyo_core.graph.plan import CheckpointSpec
from arroyo_core.graph.sections import Section
from arroyo_core.graph.values import read_duration_us, read_int, read_size, read_string
from arroyo_core.plugin import known_elsewhere

#: The keys of each section of the file.
PIPELINE_KEYS = ("name", "parameters", "parallelism", "checkpoint", "udfs", "nodes")
CHECKPOINT_KEYS = ("url", "interval", "rows", "bytes", "keep", "timeout")
UDF_KEYS = ("url", "sha256", "as")
NODE_KEYS = ("id", "operator", "inputs", "config", "parallelism")

MAX_PARALLELISM = 4096
MAX_KEEP = 1_000_000
#: Tasks tell ten times as often how far they are.
LEAST_TIMEOUT_MS = 1_000
INT64_MAX = 2**63 - 1
NAME = re.compile(r"(?=.*[A-Za-z0-9_-])[A-Za-z0-9_.-]+")
ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
ALIAS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SHA256 = re.compile(r"[0-9A-Fa-f]{64}")


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


def read_spec(
    root: YamlValue, mistakes: Mistakes, *, sections: Mapping[str, Section] = MappingProxyType({})
) -> PipelineSpec:
    """What can be read of a pipeline; whatever is wrong is recorded and replaced by a default."""
    # A pipeline with tests runs also where nothing is installed that could run or check them.
    keys = dict.fromkeys((*PIPELINE_KEYS, *sections, *known_elsewhere("sections")))
    fields = _fields(root, "a pipeline", tuple(keys), mistakes, required=("name", "nodes"))
    for key, section in sections.items():
        if _optional(fields, key):
            section.check(fields[key], mistakes)
    url = _optional(fields, "checkpoint")
    shown_url = url.entry("url") if isinstance(url, YamlMap) else None
    name = _optional(fields, "name")
    return PipelineSpec(
        name=_read_name(name, mistakes),
        shown_name=shown(name) if name else "",
        parallelism=_read_parallelism(_optional(fields, "parallelism"), mistakes) or 1,
        checkpoint=_read_checkpoint(url, mistakes),
        shown_url=shown(shown_url.value) if shown_url else None,
        nodes=_read_nodes(fields.get("nodes"), mistakes),
        udfs=_read_udfs(_optional(fields, "udfs"), mistakes),
    )


def _fields(
    value: YamlValue, what: str, keys: Sequence[str], mistakes: Mistakes, *, required: Sequence[str] = ()
) -> dict[str, Entry]:
    """The known entries of a mapping, by key."""
    if is_unresolved(value):
        return {}
    if not isinstance(value, YamlMap):
        message = f"{what} must be a mapping with the keys {', '.join(keys)}, not {describe(value)}"
        mistakes.add(message, at=value.at, value=shown(value))
        return {}
    unknown = [entry for entry in value.entries if entry.key not in keys]
    for entry in unknown:
        mistakes.add_unknown(f"{what} has no key {entry.key!r}", at=entry.key_at, name=entry.key, choices=keys)
    # A misspelled key is one mistake, not two.
    meant = {nearest(entry.key, keys) for entry in unknown}
    for key in required:
        if value.entry(key) is None and key not in meant:
            mistakes.add(f"{what} needs the key {key!r}", at=value.at)
    return {entry.key: entry for entry in value.entries if entry.key in keys}


def _optional(fields: Mapping[str, Entry], key: str) -> YamlValue | None:
    """The value of a key; a key without a value counts as not written."""
    entry = fields.get(key)
    if entry is None or (isinstance(entry.value, Scalar) and entry.value.is_null):
        return None
    return entry.value


def _read_name(value: YamlValue | None, mistakes: Mistakes) -> str:
    name = read_string(value, "'name'", mistakes) if value else None
    if name is not None and value is not None and not NAME.fullmatch(name):
        mistakes.add(
            "'name' may hold letters, digits, '_', '-' and '.', and not dots only: it is the job id and part of paths",
            at=value.at,
            value=shown(value),
            suggestion=_cleaned(value, r"[^A-Za-z0-9_.-]+"),
        )
    return name or ""


def _read_parallelism(value: YamlValue | None, mistakes: Mistakes) -> int | None:
    if value is None:
        return None
    return read_int(value, "'parallelism'", mistakes, least=1, greatest=MAX_PARALLELISM)


def _read_checkpoint(value: YamlValue | None, mistakes: Mistakes) -> CheckpointSpec:
    if value is None:
        return CheckpointSpec()
    fields = _fields(value, "'checkpoint'", CHECKPOINT_KEYS, mistakes)
    default = CheckpointSpec()
    url, interval, timeout = (_optional(fields, key) for key in ("url", "interval", "timeout"))
    rows, size, keep = (_optional(fields, key) for key in ("rows", "bytes", "keep"))
    return CheckpointSpec(
        url=_read_url(url, mistakes) if url else None,
        interval_ms=(_read_ms(interval, "interval", mistakes) if interval else None) or default.interval_ms,
        rows=read_int(rows, "'rows'", mistakes, least=1, greatest=INT64_MAX) if rows else None,
        bytes=_read_budget_bytes(size, mistakes) if size else None,
        keep=(read_int(keep, "'keep'", mistakes, least=1, greatest=MAX_KEEP) if keep else None) or default.keep,
        timeout_ms=(_read_ms(timeout, "timeout", mistakes, least_ms=LEAST_TIMEOUT_MS) if timeout else None)
        or default.timeout_ms,
    )


def _read_url(value: YamlValue, mistakes: Mistakes) -> str | None:
    url = read_string(value, "'url'", mistakes)
    if url is not None and not url.strip():
        mistakes.add("'url' must not be empty", at=value.at)
    return url


def _read_ms(value: YamlValue, key: str, mistakes: Mistakes, *, least_ms: int = 1) -> int | None:
    duration_us = read_duration_us(value, f"'{key}'", mistakes)
    if duration_us is not None and duration_us < least_ms * 1_000:
        least = format_duration_us(least_ms * 1_000)
        mistakes.add(f"'{key}' must be at least {least}", at=value.at, value=shown(value))
        return None
    return duration_us // 1_000 if duration_us is not None else None


def _read_budget_bytes(value: YamlValue, mistakes: Mistakes) -> int | None:
    size = read_size(value, "'bytes'", mistakes)
    if size == 0:
        mistakes.add("'bytes' must be at least 1", at=value.at, value=shown(value))
    return size


def _read_udfs(value: YamlValue | None, mistakes: Mistakes) -> tuple[UdfSpec, ...]:
    if value is None or is_unresolved(value):
        return ()
    if not isinstance(value, YamlList):
        mistakes.add(
            f"'udfs' must be a list of {{url, sha256, as}}, not {describe(value)}", at=value.at, value=shown(value)
        )
        return ()
    found = [_read_udf(item, f"udfs[{index}]", mistakes) for index, item in enumerate(value.items)]
    return tuple(spec for spec in found if spec is not None)


def _read_udf(value: YamlValue, place: str, mistakes: Mistakes) -> UdfSpec | None:
    fields = _fields(value, place, UDF_KEYS, mistakes, required=("url",))
    url, digest, alias = (_optional(fields, key) for key in ("url", "sha256", "as"))
    if url is None and "url" in fields:
        mistakes.add(f"'url' of {place} must not be empty", at=fields["url"].key_at)
    read_url = _read_url(url, mistakes) if url else None
    sha256 = _read_sha256(digest, mistakes) if digest else None
    read_alias = _read_alias(alias, mistakes) if alias else None
    is_wrong = (digest and sha256 is None) or (alias and read_alias is None)
    if url is None or not (read_url or "").strip() or is_wrong:
        return None
    return UdfSpec(at=value.at, url=str(read_url), shown_url=shown(url), url_at=url.at, sha256=sha256, alias=read_alias)


def _read_sha256(value: YamlValue, mistakes: Mistakes) -> str | None:
    text = read_string(value, "'sha256'", mistakes)
    if text is not None and not SHA256.fullmatch(text):
        mistakes.add("'sha256' must be 64 hexadecimal digits", at=value.at, value=shown(value))
        return None
    return text.lower() if text is not None else None


def _read_alias(value: YamlValue, mistakes: Mistakes) -> str | None:
    alias = _read_fixed(value, "'as'", mistakes)
    if alias is not None and not ALIAS.fullmatch(alias):
        mistakes.add(
            "'as' begins with a letter or '_' and may hold letters, digits and '_': functions are called as.name",
            at=value.at,
            value=shown(value),
            suggestion=_cleaned(value, r"[^A-Za-z0-9_]+|^(?=[^A-Za-z_])"),
        )
        return None
    return alias


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
    fields = _fields(value, place, NODE_KEYS, mistakes, required=("id", "operator"))
    id_value, operator = fields.get("id"), fields.get("operator")
    node_id = _read_id(id_value.value, mistakes) if id_value else None
    inputs = _optional(fields, "inputs")
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
        config=_optional(fields, "config"),
        parallelism=_read_parallelism(_optional(fields, "parallelism"), mistakes),
    )


def _read_id(value: YamlValue, mistakes: Mistakes) -> str | None:
    node_id = _read_fixed(value, "'id'", mistakes)
    if node_id is not None and not ID.fullmatch(node_id):
        mistakes.add(
            "an id begins with a letter or '_' and may hold letters, digits, '_' and '-'",
            at=value.at,
            value=shown(value),
            suggestion=_cleaned(value, r"[^A-Za-z0-9_-]+|^(?=[^A-Za-z_])"),
        )
    return node_id or None


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
