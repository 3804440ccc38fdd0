"""The order of the keys of a pipeline and of its nodes. The nodes themselves stay as they are, and configs too."""

from __future__ import annotations

from collections.abc import Sequence

from arroyo_core.pipeline.file_keys import NODE, PIPELINE
from arroyo_devtools.formatting.tree import Collection, Document, Tree, has_anchors


def arrange(document: Document) -> None:
    """Put keys in order, and lists of nodes on lines of their own.

    A file may also hold a part of a pipeline, to be included: nodes, or one node.
    """
    root = document.root
    if not isinstance(root, Collection):
        return
    root.is_flow = root.is_flow and not root.items
    if not root.is_map:
        _arrange_nodes(root)
        return
    nodes = root.item("nodes")
    if nodes is not None and isinstance(nodes.value, Collection) and not nodes.value.is_map:
        nodes.value.is_flow = nodes.value.is_flow and not nodes.value.items
        _arrange_nodes(nodes.value)
        _sort(root, PIPELINE.names)
    elif _is_node(root):
        _sort(root, NODE.names)


def _arrange_nodes(nodes: Collection) -> None:
    for item in nodes.items:
        if isinstance(item.value, Collection) and _is_node(item.value):
            _sort(item.value, NODE.names)


def _is_node(tree: Tree) -> bool:
    return isinstance(tree, Collection) and tree.item("id") is not None and tree.item("operator") is not None


def _sort(mapping: Collection, keys: Sequence[str]) -> None:
    # An alias must come after what it stands for.
    if any(has_anchors(item.value) for item in mapping.items):
        return
    ranks = {key: rank for rank, key in enumerate(("<<", *keys))}
    mapping.items.sort(key=lambda item: ranks.get(item.key.value if item.key else "", len(ranks)))
