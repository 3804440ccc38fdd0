"""Nodes that stand for several others, such as one with a query: plugins say which, before anything is planned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from arroyo_core.api import ArroyoSchema, Origin
from arroyo_core.errors import PluginError
from arroyo_core.pipeline.connections import resolve_inputs, unique_nodes
from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue, describe
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.operators import construct_operator
from arroyo_core.pipeline.schemas import type_nodes
from arroyo_core.pipeline.spec import read_spec
from arroyo_core.pipeline.topology import topological_order
from arroyo_core.pipeline.udfs import BundleLoader, load_udfs
from arroyo_core.plugin import PluginSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Unexpanded:
    """A node that stands for others: its id, what is written under the key, and the text of its file.

    `others` are the ids of all other nodes, which it might have meant.
    """

    id: str
    node: YamlMap
    value: Scalar
    text: str
    others: frozenset[str] = frozenset()


class Expansion(ABC):
    """Makes nodes of one that has a certain key instead of `operator`. Plugins give theirs through `arroyo_expansion`.

    The last of them has the id of the node, and is what others read.
    """

    key: ClassVar[str]

    @abstractmethod
    def inputs(self, unexpanded: Unexpanded, ids: Collection[str]) -> Collection[str]:
        """The nodes, of these, whose rows it needs."""

    @abstractmethod
    def expand(
        self,
        unexpanded: Unexpanded,
        inputs: Mapping[str, ArroyoSchema],
        *,
        plugins: PluginSet,
        environment: Environment,
        mistakes: Mistakes,
    ) -> Sequence[YamlMap] | None:
        """The nodes as they would be written, over inputs with these columns; None after recording a mistake."""


def expansions_of(plugins: PluginSet) -> Mapping[str, Expansion]:
    """The expansions of all plugins, by key."""
    found: dict[str, tuple[Expansion, Origin]] = {}
    for expansion, origin in plugins.hooks.collect("arroyo_expansion", Expansion):
        if expansion.key in found:
            raise PluginError(f"nodes with {expansion.key!r} are claimed by {found[expansion.key][1]} and by {origin}")
        found[expansion.key] = (expansion, origin)
    return {key: expansion for key, (expansion, _) in found.items()}


@dataclass(slots=True)
class Expanding:
    """Puts nodes into the places of those that stand for them."""

    plugins: PluginSet
    bundles: BundleLoader | None
    environment: Environment
    texts: Mapping[str, str]
    mistakes: Mistakes
    #: Whether the functions of bundles are among the plugins.
    has_functions: bool = False
    #: Ids of what could not be expanded.
    failed: set[str] = field(default_factory=set)
    #: Of other nodes, those whose columns are not known.
    untyped: set[str] = field(default_factory=set)
    #: What is wrong with the other nodes, as far as it is known.
    unheard: Mistakes = field(default_factory=Mistakes)

    def document(self, root: YamlValue) -> YamlValue:
        """The document with all nodes written out; what is wrong is recorded, and raised where a node is missing."""
        entry = root.entry("nodes") if isinstance(root, YamlMap) else None
        if not isinstance(root, YamlMap) or entry is None or not isinstance(entry.value, YamlList):
            return root
        expansions = expansions_of(self.plugins) if any(_may_expand(item) for item in entry.value.items) else {}
        pending = self._find(entry.value.items, expansions)
        if not pending:
            return root
        found: dict[int, Sequence[YamlMap]] = {}
        while pending:
            ready = self._ready(pending, [index for index in pending if index not in found])
            if not ready:
                names = ", ".join(unexpanded.id for _, unexpanded in pending.values())
                at = next(iter(pending.values()))[1].node.at
                self.mistakes.add(f"the nodes {names} read one another", at=at)
                break
            schemas = self._typed(root, entry, found, pending)
            for index in ready:
                found[index] = self._expand(*pending.pop(index), schemas)
        if self.failed and not self.mistakes:
            self.mistakes.extend(self.unheard)
        self.mistakes.raise_if_any()
        return _with_nodes(root, entry, found, pending)

    def _find(
        self, items: Sequence[YamlValue], expansions: Mapping[str, Expansion]
    ) -> dict[int, tuple[Expansion, Unexpanded]]:
        """What is to be expanded, by its place in the list."""
        found: dict[int, tuple[Expansion, Unexpanded]] = {}
        ids = {found_id for item in items if (found_id := _id_of(item)) is not None}
        for index, item in enumerate(items):
            if not isinstance(item, YamlMap) or not _may_expand(item):
                continue
            written = next((each for each in item.entries if each.key in expansions), None)
            node_id = item.entry("id")
            if written is None or node_id is None or not isinstance(node_id.value, Scalar):
                continue
            if not isinstance(written.value, Scalar):
                message = f"{written.key!r} must be a text, not {describe(written.value)}"
                self.mistakes.add(message, at=written.value.at)
                continue
            for other in (each for each in item.entries if each.key not in ("id", written.key)):
                self.mistakes.add(f"a node with {written.key!r} has no key {other.key!r}", at=other.key_at)
            text = self.texts.get(written.value.at.file, "")
            name = node_id.value.text
            others = frozenset(ids - {name})
            unexpanded = Unexpanded(id=name, node=item, value=written.value, text=text, others=others)
            found[index] = (expansions[written.key], unexpanded)
        return found

    def _ready(self, pending: Mapping[int, tuple[Expansion, Unexpanded]], indices: Sequence[int]) -> list[int]:
        ids = {unexpanded.id for _, unexpanded in pending.values()}
        ready = []
        for index in indices:
            expansion, unexpanded = pending[index]
            if not expansion.inputs(unexpanded, ids - {unexpanded.id}):
                ready.append(index)
        return ready

    def _typed(
        self,
        root: YamlMap,
        entry: Entry,
        found: Mapping[int, Sequence[YamlMap]],
        pending: Mapping[int, tuple[Expansion, Unexpanded]],
    ) -> dict[str, ArroyoSchema]:
        """The columns of all nodes that can be typed so far; what is wrong with them is recorded later."""
        unheard = self.unheard = Mistakes()
        spec = read_spec(_with_nodes(root, entry, found, pending), unheard)
        if not self.has_functions:
            self.plugins, _ = load_udfs(
                spec, self.bundles, plugins=self.plugins, environment=self.environment, mistakes=unheard
            )
            self.has_functions = True
        nodes = unique_nodes(spec.nodes, unheard)
        operators = {
            name: operator
            for name, node in nodes.items()
            if (
                operator := construct_operator(
                    node, plugins=self.plugins, environment=self.environment, mistakes=unheard
                )
            )
            is not None
        }
        # Inputs may be nodes that are still to be expanded.
        order = topological_order(resolve_inputs(nodes, Mistakes()))
        typed = type_nodes(order, operators, dict.fromkeys(order, 1))
        self.untyped = {name for name in nodes if name not in typed}
        return {name: node.output_schema for name, node in typed.items()}

    def _expand(
        self, expansion: Expansion, unexpanded: Unexpanded, schemas: Mapping[str, ArroyoSchema]
    ) -> Sequence[YamlMap]:
        if expansion.inputs(unexpanded, (self.failed | self.untyped) - {unexpanded.id}):
            # One mistake is enough: that of the node it reads.
            self.failed.add(unexpanded.id)
            return ()
        inputs = {name: schemas[name] for name in expansion.inputs(unexpanded, schemas)}
        nodes = expansion.expand(
            unexpanded, inputs, plugins=self.plugins, environment=self.environment, mistakes=self.mistakes
        )
        if not nodes:
            self.failed.add(unexpanded.id)
        return nodes or ()


def _id_of(item: YamlValue) -> str | None:
    node_id = item.entry("id") if isinstance(item, YamlMap) else None
    return node_id.value.text if node_id is not None and isinstance(node_id.value, Scalar) else None


def _may_expand(item: YamlValue) -> bool:
    return isinstance(item, YamlMap) and item.entry("operator") is None and item.entry("id") is not None


def _with_nodes(
    root: YamlMap,
    entry: Entry,
    found: Mapping[int, Sequence[YamlMap]],
    pending: Mapping[int, object],
) -> YamlMap:
    """The document with what was expanded, and without what is still to be."""
    assert isinstance(entry.value, YamlList)
    items: list[YamlValue] = []
    for index, item in enumerate(entry.value.items):
        if index not in pending:
            items += found.get(index, (item,))
    nodes = YamlList(at=entry.value.at, items=tuple(items), size=1 + sum(item.size for item in items))
    written = Entry(key=entry.key, key_at=entry.key_at, value=nodes)
    entries = tuple(written if each is entry else each for each in root.entries)
    return YamlMap(at=root.at, entries=entries, size=1 + sum(each.value.size for each in entries))
