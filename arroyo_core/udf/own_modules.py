"""Which modules are the program's own, so that executors cannot be expected to have them."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from importlib import metadata
from pathlib import Path

from arroyo_core.udf.memory_import import PREFIX


def own_modules() -> list[str]:
    """The names of the loaded modules that are pickled with the functions that use them."""
    return [name for name in list(sys.modules) if is_own_module(name)]


def is_own_module(name: str | None) -> bool:
    """Whether a module is a script, a notebook, or a file beside them: neither Python's nor installed."""
    if name is None or name == "__main__":
        return True
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top in _installed_names() or top.startswith(PREFIX):
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and not any(Path(file).is_relative_to(folder) for folder in _install_folders())


@cache
def _installed_names() -> frozenset[str]:
    """Also of editable installs, whose files are anywhere: at least ourselves and all plugins."""
    plugins = {point.value.partition(".")[0].partition(":")[0] for point in metadata.entry_points(group="arroyo_core")}
    return frozenset({"arroyo_core", *plugins, *metadata.packages_distributions()})


@cache
def _install_folders() -> tuple[Path, ...]:
    return tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
