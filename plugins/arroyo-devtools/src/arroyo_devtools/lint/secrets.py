"""Findings about passwords and keys that are written in the file, where everybody can read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue
from arroyo_core.pipeline.environment import REFERENCE
from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.redaction import HIDDEN
from arroyo_core.pipeline.secret_fields import find_secrets, is_secret_name
from arroyo_core.pipeline.wellknown import DYNAMIC
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import options_pb2
from arroyo_devtools.lint.findings import Finding

_PASSWORD_IN_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:(?P<secret>[^/\s@]+)@")
_SECRET_IN_TEXT = re.compile(
    r"(?:^|[?&;\s])(?:password|passwd|pwd|secret|token|access_token|api_key|sig|accountkey|x-amz-signature)"
    r"=(?P<secret>[^\s&;'\"]+)",
    re.IGNORECASE,
)
#: Keys that are known by their form.
_SHAPES = {
    "an access key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a token of GitHub": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
    "a token of Slack": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    "a key of Google": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "a signed web token": re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
}
_FIX = "read it from the environment: ${NAME}"


def lint_secrets(pipeline: PlannedPipeline, plugins: PluginSet) -> Iterator[Finding]:
    """One finding for each value that is, or holds, a secret."""
    root = pipeline.written.root
    seen: set[Location] = set()
    for finding in _in_pipeline(root, plugins):
        # One value may be reached twice, through an alias or a file that is included twice.
        if finding.at not in seen:
            seen.add(finding.at)
            yield finding


def hide_secrets(text: str) -> str:
    """The text with all that has the form of a password or a key hidden: for texts of whose secrets nobody knows."""
    for pattern in (_PASSWORD_IN_URL, _SECRET_IN_TEXT):
        text = pattern.sub(_without_secret, text)
    for shape in _SHAPES.values():
        text = shape.sub(HIDDEN, text)
    return text


def _without_secret(found: re.Match[str]) -> str:
    start, end = (place - found.start() for place in found.span("secret"))
    return f"{found.group()[:start]}{HIDDEN}{found.group()[end:]}"


def secret_places(pipeline: PlannedPipeline, plugins: PluginSet) -> Iterator[Location]:
    """Where the file has values of fields that operators mark as secret: their lines are not repeated."""
    for operator in pipeline.operators.values():
        descriptor = cast(Descriptor, operator.config_type.DESCRIPTOR)
        secrets = find_secrets(operator.spec.config, descriptor, plugins.registry.lookups)
        yield from (found.value.at for found in secrets if found.is_in_clear)


def _in_pipeline(root: YamlValue, plugins: PluginSet) -> Iterator[Finding]:
    for entry in root.entries if isinstance(root, YamlMap) else ():
        if entry.key == "nodes" and isinstance(entry.value, YamlList):
            for node in entry.value.items:
                yield from _in_node(node, plugins)
        elif entry.key == "parameters" and isinstance(entry.value, YamlMap):
            for parameter in entry.value.entries:
                yield from _in_parameter(parameter)
        elif entry.key == "tests":
            # Their columns have the names that the user's data has.
            yield from _in_value(entry.value)
        else:
            yield from _in_entry(entry)


def _in_node(node: YamlValue, plugins: PluginSet) -> Iterator[Finding]:
    if not isinstance(node, YamlMap):
        return
    operator = node.entry("operator")
    for entry in node.entries:
        if entry.key == "config" and operator is not None and isinstance(operator.value, Scalar):
            descriptor = cast(Descriptor, plugins.constructor(operator.value.text).config_type.DESCRIPTOR)
            yield from _in_secret_fields(entry.value, descriptor, plugins)
            yield from _in_config(entry.value, descriptor)
        else:
            yield from _in_value(entry.value)


def _in_secret_fields(config: YamlValue, message: Descriptor, plugins: PluginSet) -> Iterator[Finding]:
    """What operators mark as secret. A map of settings has others as well, which are told apart by their names."""
    for secret in find_secrets(config, message, plugins.registry.lookups):
        name = secret.setting
        if secret.is_in_clear and not secret.value.is_parameter and (name is None or is_secret_name(name)):
            what = "a secret of the operator" if name is None else repr(name)
            yield _finding(f"{what} is written in clear", secret.value.at)


def _in_config(value: YamlValue, message: Descriptor | None) -> Iterator[Finding]:
    """As `_in_value`, but for names of columns: they are the user's own, and say nothing about the value."""
    if message is None or not isinstance(value, YamlMap):
        yield from _in_value(value)
        return
    fields = {field.json_name: field for field in message.fields} | dict(message.fields_by_name)
    for entry in value.entries:
        field = fields.get(entry.key)
        if field is not None and _is_ordered_map(field):
            yield from _in_columns(entry.value)
        elif field is not None and field.message_type is not None and field.message_type.full_name in DYNAMIC:
            # Names in it are looked at with the secret fields.
            yield from _in_value(entry.value, has_names=False)
        elif field is not None and _has_fields(field) and isinstance(entry.value, YamlMap):
            yield from _in_config(entry.value, field.message_type)
        elif field is not None and _has_fields(field) and isinstance(entry.value, YamlList):
            for item in entry.value.items:
                yield from _in_config(item, field.message_type)
        else:
            yield from _in_entry(entry)


def _in_columns(value: YamlValue) -> Iterator[Finding]:
    for item in value.entries if isinstance(value, YamlMap) else ():
        yield from _in_value(item.value, has_names=False)
    if isinstance(value, YamlList):
        yield from _in_value(value, has_names=False)


def _is_ordered_map(field: FieldDescriptor) -> bool:
    option: Any = options_pb2.ordered_map
    return bool(field.GetOptions().Extensions[option])


def _has_fields(field: FieldDescriptor) -> bool:
    kind = field.message_type
    return kind is not None and not kind.GetOptions().map_entry and not kind.full_name.startswith("google.protobuf.")


def _in_parameter(parameter: Entry) -> Iterator[Finding]:
    if not isinstance(parameter.value, YamlMap):
        return
    for entry in parameter.value.entries:
        if entry.key == "default":
            yield from _in_entry(Entry(key=parameter.key, key_at=parameter.key_at, value=entry.value))
        else:
            yield from _in_value(entry.value)


def _in_value(value: YamlValue, *, has_names: bool = True) -> Iterator[Finding]:
    if isinstance(value, Scalar):
        yield from _in_text(value)
    elif isinstance(value, YamlList):
        for item in value.items:
            yield from _in_value(item, has_names=has_names)
    else:
        for entry in value.entries:
            yield from _in_entry(entry) if has_names else _in_value(entry.value, has_names=False)


def _in_entry(entry: Entry) -> Iterator[Finding]:
    value = entry.value
    if isinstance(value, Scalar) and is_secret_name(entry.key) and _is_written_out(value):
        yield _finding(f"{entry.key!r} is written in clear", value.at)
    else:
        yield from _in_value(value)


def _in_text(value: Scalar) -> Iterator[Finding]:
    if value.is_parameter:
        return
    what = describe_secret(value.written)
    if what is not None:
        yield _finding(f"{what} is written in clear", value.at)


def describe_secret(text: str) -> str | None:
    """What secret a text holds, None for none; a reference to the environment is not a secret."""
    for pattern, what in ((_PASSWORD_IN_URL, "the password of a URL"), (_SECRET_IN_TEXT, "a password or a key")):
        if any(not REFERENCE.search(match["secret"]) for match in pattern.finditer(text)):
            return what
    return next((what for what, pattern in _SHAPES.items() if pattern.search(text)), None)


def _is_written_out(value: Scalar) -> bool:
    if value.is_parameter or not value.text.strip() or REFERENCE.search(value.written):
        return False
    return not isinstance(value.value, bool | None)


def _finding(message: str, at: Location) -> Finding:
    return Finding(code="secret-in-clear", message=message, fix=_FIX, at=at, shows_line=False)
