"""Checks of a plugin as a whole: what it registers, and what it imports when it is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from importlib import import_module

from arroyo_core.api import Registry
from arroyo_testing.conformance.faults import GUIDE, ConformanceError

#: Runs in a fresh interpreter; tells which foreign packages come in with the plugin, and which file asks for each.
_PROBE = """
import json, sys
import importlib.abc, importlib.machinery, traceback
from arroyo_core.api import Registry
import arroyo_core.errors, arroyo_core.plugin, arroyo_core.state, arroyo_core.udf
plugin, own = sys.argv[1], set(sys.argv[2].split(","))
known = {name.partition(".")[0] for name in sys.modules} | set(sys.stdlib_module_names) | own
found = {}
class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in known and top not in found:
            frames = [f for f in traceback.extract_stack()[:-1] if not f.filename.startswith("<frozen")]
            found[top] = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        return None
sys.meta_path.insert(0, Watch())
module = importlib.import_module(plugin)
module.arroyo_register(Registry())
print(json.dumps({name: place for name, place in found.items() if name in sys.modules}))
"""
_TIMEOUT_S = 120


def load_registry(plugin: str) -> Registry:
    """The registry as the plugin fills it."""
    module = import_module(plugin)
    if not hasattr(module, "arroyo_register"):
        raise ConformanceError(
            f"the module {plugin} has no arroyo_register(registry): define it, marked with @hookimpl"
        )
    registry = Registry()
    module.arroyo_register(registry)
    return registry


def check_imports_nothing_heavy(plugin: str, *, allowed: Collection[str] = ()) -> None:
    """Every command of arroyo imports every plugin: client libraries come in when an operator is made."""
    own = [plugin.partition(".")[0], "google", *allowed]
    command = [sys.executable, "-c", _PROBE, plugin, ",".join(own)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    answer = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if answer.returncode != 0:
        raise ConformanceError(f"{plugin} cannot be imported in a fresh interpreter", details=answer.stderr)
    found = json.loads(answer.stdout.splitlines()[-1])
    if found:
        places = ", ".join(f"{name} (at {place})" for name, place in list(found.items())[:3])
        raise ConformanceError(
            f"{plugin} imports {places} when it is discovered, and so does every command of arroyo: "
            f"import it in with_config() or in a module that is imported there: see {GUIDE}"
        )


def check_every_operator_has_a_case(plugin: str, registry: Registry, covered: Sequence[str]) -> None:
    """Operators without a case are not checked."""
    missing = sorted(set(registry.constructors) - set(covered))
    if missing:
        raise ConformanceError(
            f"{plugin} registers {', '.join(missing)} without a case: "
            "add an OperatorCase, a SourceCase or a SinkCase for each"
        )


def check_prefix(plugin: str, registry: Registry) -> None:
    """All operators of a plugin begin with the one word that is its entry point's name."""
    prefixes = sorted({name.partition(".")[0] for name in registry.constructors})
    if len(prefixes) > 1:
        raise ConformanceError(
            f"{plugin} registers operators under {' and '.join(prefixes)}: use one prefix, the name of its entry point"
        )
