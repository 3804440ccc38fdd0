"""Planned nodes and settings as the document of a pipeline, and as YAML that a person can read and tune."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Entry, Scalar, YamlMap, YamlValue
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.rendering import render_document
from arroyo_sql.places import Placed, mapping, scalar, sequence
from arroyo_sql.planned import Node
from arroyo_sql.script import Setting


def nodes_entry(
    nodes: Sequence[Node],
    *,
    at: Location,
    former: Mapping[str, str],
    redact: Callable[[str], str],
) -> Entry:
    """`nodes` of the document. `former` has the former id of a node by its id."""
    items = [node_document(node, was=former.get(node.id), redact=redact) for node in nodes]
    return Entry(key="nodes", key_at=at, value=sequence(at, items))


def untold_nodes(at: Location) -> Entry:
    """`nodes` that cannot be told: a mistake is recorded, or nobody asked for them."""
    value = Scalar(at=at, text="", written="", is_plain=False, is_unresolved=True)
    return Entry(key="nodes", key_at=at, value=value)


def former_ids(nodes: Sequence[Node], former: Mapping[str, Setting], mistakes: Mistakes) -> dict[str, str]:
    """The former ids of nodes, by what `SET was.new = 'old'` says of whole ids, or of the names that ids begin with."""
    found: dict[str, str] = {}
    ids = [node.id for node in nodes]
    for name, setting in sorted(former.items(), key=lambda item: len(item[0])):
        own = [node_id for node_id in ids if node_id == name or node_id.startswith(f"{name}_")]
        if not own or not isinstance(setting.value, str):
            message = f"'was.{name}': no view, table or node is called {name!r}"
            mistakes.add(message, at=setting.name_at, value=name, suggestion=nearest(name, ids))
        found |= {node_id: f"{setting.value}{node_id[len(name) :]}" for node_id in own}
    return found


def node_document(node: Node, *, was: str | None, redact: Callable[[str], str]) -> YamlMap:
    """A node as it would be written."""
    values: list[tuple[str, YamlValue]] = [("id", scalar(node.at, node.id))]
    if was is not None:
        values.append(("was", scalar(node.at, was)))
    values.append(("operator", scalar(node.at, node.operator)))
    if node.inputs:
        values.append(("inputs", sequence(node.at, [scalar(node.at, name) for name in node.inputs])))
    if node.config:
        values.append(("config", Placed(node.at, node.places, node.secrets, redact).value(node.config)))
    return mapping(node.at, [Entry(key=key, key_at=node.at, value=value) for key, value in values])


def to_yaml(root: YamlValue, *, heading: str) -> str:
    """A pipeline as YAML in the canonical layout."""
    lines = [f"# {line}" for line in heading.splitlines()]
    return "\n".join([*lines, render_document(_escaped(root))])


def _escaped(value: YamlValue) -> YamlValue:
    """The same with what YAML would take for a reference as it has to be written there."""
    match value:
        case Scalar():
            written = value.written if value.is_substituted else escape(value.written)
            # In YAML a reference that stands alone is one to a number too, where it is not in quotes.
            return Scalar(
                at=value.at,
                text=value.text,
                written=written,
                is_plain=value.is_plain,
                is_substituted=value.is_substituted,
            )
        case YamlMap():
            return mapping(
                value.at,
                [Entry(key=entry.key, key_at=entry.key_at, value=_escaped(entry.value)) for entry in value.entries],
            )
    return sequence(value.at, [_escaped(item) for item in value.items])


def escape(text: str) -> str:
    """A text as YAML has it, where `$$` is a dollar sign and `${` begins a reference."""
    return text.replace("$$", "$$$$").replace("${", "$${") if "$" in text else text
