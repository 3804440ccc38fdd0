"""Kinds of storage beside local files and fsspec's, given by plugins through the hook `arroyo_storage`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from arroyo_core.api import Origin
from arroyo_core.errors import PluginError
from arroyo_core.plugin import PluginSet, installed_plugins

if TYPE_CHECKING:
    from arroyo_core.state.storage import Driver


class StorageKind(ABC):
    """Opens URLs with certain protocols.

    A driver whose `put_if_absent` lets exactly one of racing writers win says so with an attribute
    `creates_exclusively = True`; any other has to show it in a race before a job's first claim.
    """

    #: Such as `acme`, for `acme://bucket/folder`.
    protocols: ClassVar[tuple[str, ...]]

    @abstractmethod
    def open(self, url: str, options: Mapping[str, Any]) -> Driver:
        """A driver for what is below the URL, in each process that needs one; raises `SetupError` where it cannot."""


def storage_kind(protocol: str, plugins: PluginSet | None = None) -> StorageKind | None:
    """The kind that a plugin has for a protocol; None where that is left to fsspec."""
    plugins = plugins or installed_plugins()
    found: list[tuple[StorageKind, Origin]] = [
        (kind, origin)
        for kind, origin in plugins.hooks.collect("arroyo_storage", StorageKind)
        if protocol in kind.protocols
    ]
    if len(found) > 1:
        raise PluginError(f"URLs {protocol}:// are claimed by {found[0][1]} and by {found[1][1]}")
    return found[0][0] if found else None
