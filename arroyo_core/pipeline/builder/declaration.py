"""What a program declares: nodes, and the job that they are parts of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from arroyo_core.pipeline.builder.documents import DocumentWriter, mapping, sequence
from arroyo_core.pipeline.builder.places import Arguments, CallSite
from arroyo_core.pipeline.document import Entry, YamlMap
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.file_keys import NODE, PIPELINE
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.substitution import References
from arroyo_core.pipeline.written import WrittenPipeline

_Written = ast.expr | ast.keyword
#: A node's own keys, which a call gives by these names.
NODE_KEYS = ("id", "was", "parallelism")
#: Operators of this name say what they are by their plugin.
_PORTS = ("source", "sink")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeclaredNode:
    """A node as a program declares it: one object, one node, however many read it."""

    operator: str
    #: With the side output that is read; None for the main one.
    inputs: tuple[tuple[DeclaredNode, str | None], ...]
    config: Mapping[str, object] = field(repr=False)
    #: Those of `NODE_KEYS` that were given.
    keys: Mapping[str, object]
    site: CallSite = field(repr=False)
    #: The argument that gave each field of the config: its keyword, or its position.
    arguments: Mapping[str, str | int] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredJob:
    """A pipeline as a program declares it: the nodes that `ends` need, and settings by their keys in a file."""

    ends: tuple[DeclaredNode, ...]
    settings: Mapping[str, object]
    site: CallSite = field(repr=False)

    @property
    def file(self) -> str:
        """The program, as errors name it."""
        return self.site.at.file

    def nodes(self) -> dict[DeclaredNode, str]:
        """All nodes with their ids, inputs first, in an order that depends on nothing but how they are connected.

        A node without an id is named after its operator: `filter`, the next one `filter_2`.
        """
        order = list(dict.fromkeys(node for end in self.ends for node in _inputs_first(end)))
        taken = {str(node.keys["id"]) for node in order if node.keys.get("id") is not None}
        ids: dict[DeclaredNode, str] = {}
        for node in order:
            given = node.keys.get("id")
            ids[node] = str(given) if given is not None else _free_id(default_id(node.operator), taken)
            taken.add(ids[node])
        return ids

    def write(self, environment: Environment, mistakes: Mistakes) -> WrittenPipeline:
        """The document that a file of the same pipeline has, with the places of the program."""
        writer = DocumentWriter(References(environment), mistakes)
        ids = self.nodes()
        arguments = writer.sources.arguments(self.site)
        entries = _written_keys(self.settings, PIPELINE.names, writer, self.site, arguments)
        nodes = sequence(self.site.at, [_node(node, ids, writer) for node in ids])
        entries.append(Entry(key="nodes", key_at=self.site.at, value=nodes))
        return WrittenPipeline(root=mapping(self.site.at, entries), texts={}, parameters={}, unused_parameters=())


def default_id(operator: str) -> str:
    """`filter` for `std.filter`, `kafka_source` for `kafka.source`."""
    _, dot, last = operator.partition(".")
    name = last if dot and last not in _PORTS else operator
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "_" for letter in name)


def _free_id(name: str, taken: set[str]) -> str:
    number = 2
    found = name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _inputs_first(end: DeclaredNode) -> Iterator[DeclaredNode]:
    """Without recursion: a program may chain as many nodes as it likes."""
    seen: set[DeclaredNode] = set()
    stack = [(end, iter(end.inputs))]
    while stack:
        node, inputs = stack[-1]
        following = next((source for source, _ in inputs if source not in seen), None)
        if following is not None:
            seen.add(following)
            stack.append((following, iter(following.inputs)))
        else:
            stack.pop()
            yield node


def _node(node: DeclaredNode, ids: Mapping[DeclaredNode, str], writer: DocumentWriter) -> YamlMap:
    site = node.site
    arguments = writer.sources.arguments(site)
    own: dict[str, object] = {**node.keys, "id": node.keys.get("id", ids[node]), "operator": node.operator}
    entries = _written_keys(own, NODE.names, writer, site, arguments)
    if node.inputs:
        read = [ids[source] if output is None else f"{ids[source]}.{output}" for source, output in node.inputs]
        inputs = writer.value(read, site=site, what="'inputs'")
        entries.append(Entry(key="inputs", key_at=site.at, value=inputs))
    if node.config:
        config = [
            _entry(name, value, writer, site, _argument(arguments, node.arguments.get(name, name)))
            for name, value in node.config.items()
        ]
        entries.append(Entry(key="config", key_at=site.at, value=mapping(site.at, config)))
    order = {name: place for place, name in enumerate(NODE.names)}
    return mapping(site.at, sorted(entries, key=lambda entry: order[entry.key]))


def _written_keys(
    given: Mapping[str, object], names: Sequence[str], writer: DocumentWriter, site: CallSite, arguments: Arguments
) -> list[Entry]:
    return [
        _entry(name, given[name], writer, site, _argument(arguments, name))
        for name in names
        if given.get(name) is not None
    ]


def _entry(
    name: str, value: object, writer: DocumentWriter, site: CallSite, argument: tuple[_Written | None, ast.expr | None]
) -> Entry:
    key, source = argument
    key_at = writer.sources.place(key, site) if key is not None else site.at
    return Entry(key=name, key_at=key_at, value=writer.value(value, site=site, node=source, what=repr(name)))


def _argument(arguments: Arguments, written: str | int) -> tuple[_Written | None, ast.expr | None]:
    """The source of an argument, and that of its value."""
    if isinstance(written, int):
        found = arguments.positional[written] if written < len(arguments.positional) else None
        return found, found
    word = arguments.keywords.get(written)
    return word, word.value if word is not None else None
