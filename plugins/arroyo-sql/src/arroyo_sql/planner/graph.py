"""The nodes that come out. Each is made and typed by its real operator as soon as it is added."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import Location
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.operators import PlannedOperator, construct_operator
from arroyo_core.pipeline.spec import InputSpec, NodeSpec
from arroyo_core.plugin import PluginSet
from arroyo_sql.places import Placed
from arroyo_sql.planned import Connection, Node

#: Names of tables may have any letters, ids of nodes may not.
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")


class AbandonedError(Exception):
    """A statement cannot be planned; its mistakes are recorded."""


@dataclass(slots=True)
class Graph:
    """Nodes by id, in an order in which each stands after its inputs."""

    plugins: PluginSet
    environment: Environment
    mistakes: Mistakes
    nodes: dict[str, Node] = field(default_factory=dict)
    #: Of predicates of filters those conditions that only compare columns with constants.
    conditions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _schemas: dict[str, ArroyoSchema] = field(default_factory=dict)
    _operators: dict[str, PlannedOperator] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)

    def schema(self, node: str) -> ArroyoSchema:
        return self._schemas[node]

    def operator(self, node: str) -> PlannedOperator:
        return self._operators[node]

    def columns(self, node: str) -> list[str]:
        return list(self._schemas[node].names)

    def add(
        self,
        role: str,
        operator: str,
        inputs: Sequence[str],
        config: Mapping[str, Any],
        *,
        at: Location,
    ) -> str:
        """The id of a node, of an equal one that there is already if there is one.

        Raises `AbandonedError` after recording why its operator does not accept it.
        """
        key = json.dumps([operator, list(inputs), config], default=str)
        if key not in self._known:
            self._known[key] = self._insert(Node(role, operator, tuple(inputs), dict(config), at))
        return self._known[key]

    def connect(self, id: str, connection: Connection, inputs: Sequence[str]) -> str:
        """The id of a node of a connector: each call makes one."""
        return self._insert(_connected(id, connection, inputs))

    def type_of_connection(self, connection: Connection, inputs: Sequence[str]) -> ArroyoSchema:
        """What a node of a connector would give, without adding it."""
        return self._typed(_connected("trial", connection, inputs))[1]

    def type_of(self, operator: str, inputs: Sequence[str], config: Mapping[str, Any], *, at: Location) -> ArroyoSchema:
        """What a node would give, without adding it."""
        return self._typed(Node("trial", operator, tuple(inputs), dict(config), at))[1]

    def trial(self, node: Node) -> ArroyoSchema:
        """What a node would give; raises `AbandonedError`, without recording why, where it cannot be."""
        mistakes, self.mistakes = self.mistakes, Mistakes()
        try:
            return self._typed(node)[1]
        finally:
            self.mistakes = mistakes

    def _insert(self, node: Node) -> str:
        base = _NOT_IN_IDS.sub("_", node.id)
        id, repeat = base, 2
        while id in self.nodes:
            id, repeat = f"{base}_{repeat}", repeat + 1
        node = replace(node, id=id)
        operator, schema = self._typed(node)
        self.nodes[id], self._schemas[id], self._operators[id] = node, schema, operator
        return id

    def _typed(self, node: Node) -> tuple[PlannedOperator, ArroyoSchema]:
        found = Mistakes()
        spec = NodeSpec(
            id=node.id,
            at=node.at,
            is_named=True,
            operator=node.operator,
            operator_at=node.at,
            inputs=tuple(InputSpec(id=source, at=node.at) for source in node.inputs),
            inputs_at=node.at,
            has_valid_inputs=True,
            config=Placed(node.at, node.places, node.secrets).value(node.config) if node.config else None,
            parallelism=None,
        )
        operator = construct_operator(spec, plugins=self.plugins, environment=self.environment, mistakes=found)
        schema = None
        if operator is not None:
            boundary, inner = operator.boundary, operator.constructed.inner
            inputs = tuple(self._schemas[source] for source in node.inputs)
            schema = boundary.call("output_schema()", lambda: inner.output_schema(inputs), expected=ArroyoSchema)
        self.mistakes.extend(found)
        if operator is None or schema is None:
            raise AbandonedError
        return operator, schema


def _connected(id: str, connection: Connection, inputs: Sequence[str]) -> Node:
    return Node(
        id,
        connection.operator,
        tuple(inputs),
        connection.config,
        connection.at,
        places=connection.places,
        secrets=connection.secrets,
    )
