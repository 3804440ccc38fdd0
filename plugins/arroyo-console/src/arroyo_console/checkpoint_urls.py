"""Gives a pipeline that does not say where its checkpoints go a place for them, without moving a line of its text."""

from __future__ import annotations

import json

import yaml

from arroyo_console.values import Language


def with_checkpoint_url(text: str, language: Language, url: str) -> str:
    """The text of a pipeline without `checkpoint.url`, with this one. Lines keep their numbers but for one in YAML."""
    if language is Language.SQL:
        quoted = url.replace("'", "''")
        return f"SET checkpoint.url = '{quoted}'; {text}"
    written = json.dumps(url)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("the text is not a mapping")
    found = next((value for key, value in root.value if key.value == "checkpoint"), None)
    if not isinstance(found, yaml.MappingNode):
        if found is not None:
            # `checkpoint:` with nothing behind it.
            return f"{text[: found.end_mark.index]} {{url: {written}}}{text[found.end_mark.index :]}"
        return _with_key(text, root, written)
    place = found.start_mark.index
    if found.flow_style:
        comma = ", " if found.value else ""
        return f"{text[: place + 1]}url: {written}{comma}{text[place + 1 :]}"
    indent = " " * found.start_mark.column
    return f"{text[:place]}url: {written}\n{indent}{text[place:]}"


def _with_key(text: str, root: yaml.MappingNode, written: str) -> str:
    if root.flow_style:
        place = root.start_mark.index
        return f"{text[: place + 1]}checkpoint: {{url: {written}}}, {text[place + 1 :]}"
    first = root.value[0][0].start_mark
    indent = " " * first.column
    return f"{text[: first.index]}checkpoint: {{url: {written}}}\n{indent}{text[first.index :]}"
