"""Plugins found through entry points: made here as real distributions in a folder on the path."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import Distribution, EntryPoint

import pytest

from arroyo_core.errors import PluginError
from arroyo_core.plugin import discover
from arroyo_core.plugin.discovery import BLOCK_VARIABLE

REGISTERS = """
from google.protobuf import struct_pb2
from arroyo_core.api import OperatorConstructor
from arroyo_core.plugin import hookimpl

class Constructor(OperatorConstructor):
    config_type = struct_pb2.Struct
    def with_config(self, config, registry): raise NotImplementedError

@hookimpl
def arroyo_register(registry):
    registry.add({name!r}, Constructor())
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Make a distribution with one plugin module; returns its entry point, as installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = []

    def make(name: str, code: str, *, version: str = "1.0") -> EntryPoint:
        module = f"plugin_{name}_{tmp_path.name}".replace("-", "_")
        modules.append(module)
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"dist_{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist-{name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[arroyo_core]\n{name} = {module}\n")
        (point,) = Distribution.at(info).entry_points
        return point

    yield make
    for module in modules:
        sys.modules.pop(module, None)


def report_on(plugins, name):
    return next(report for report in plugins.reports if report.name == name)


def test_functions_know_the_distribution_that_brought_them(install):
    code = """
from arroyo_core.plugin import hookimpl
from arroyo_core.udf import udf

@udf
def tidy(text: str) -> str:
    return text.strip()

@hookimpl
def arroyo_register(registry):
    registry.add_udf(tidy)
"""
    plugins = discover([install("acme", code, version="2.5")])
    assert str(plugins.registry.udfs["tidy"].source) == "distribution dist-acme 2.5"
    assert str(plugins.registry.udf_origin("tidy")) == "dist-acme 2.5"


FUNCTION = """
from arroyo_core.plugin import hookimpl
from arroyo_core.udf import udf

@udf
def clean(number: int) -> int:
    return number + {added}

@udf
def {own}(number: int) -> int:
    return number

@hookimpl
def arroyo_register(registry):
    registry.add_udf(clean)
    registry.add_udf({own})
"""


def test_a_function_that_two_distributions_claim_is_nobodys(install):
    """Else the one whose name sorts first would be called, whichever was meant."""
    honest = install("payments", FUNCTION.format(added=1, own="mine"))
    squatter = install("aaa", FUNCTION.format(added=666, own="theirs"))
    registry = discover([honest, squatter]).registry
    assert sorted(registry.udfs) == ["mine", "theirs"]
    with pytest.raises(PluginError, match=r"'clean' is registered twice: by dist-aaa 1.0 and by dist-payments 1.0"):
        registry.find_udf("clean")
    with pytest.raises(PluginError, match="'clean' is registered twice"):
        registry.with_udfs(()).find_udf("clean")


def test_a_plugin_is_found_with_its_distribution(install):
    plugins = discover([install("acme", REGISTERS.format(name="acme.count"), version="2.5")])
    assert plugins.constructor("acme.count") is plugins.registry.constructors["acme.count"]
    assert str(plugins.origin("acme.count")) == "dist-acme 2.5"
    assert report_on(plugins, "acme").operators == ("acme.count",)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_client_library", "ModuleNotFoundError: No module named 'no_such_client_library'"),
        ("raise RuntimeError('bad day')", "RuntimeError: bad day"),
        ("import sys\nsys.exit(0)", "SystemExit: 0"),
        ("x = 1", "implements no hook"),
        (
            "from arroyo_core.plugin import hookimpl\n@hookimpl\ndef arroyo_unregister(registry): pass",
            "unknown hook 'arroyo_unregister'",
        ),
        (REGISTERS.format(name="noprefix"), "not of the form 'plugin.operator'"),
    ],
    ids=["missing library", "raises", "exits", "no hook", "unknown hook", "bad name"],
)
def test_a_broken_plugin_harms_only_pipelines_that_use_it(install, code, reason):
    plugins = discover([install("bad", code), install("good", REGISTERS.format(name="good.op"))])
    assert plugins.constructor("good.op")
    assert reason in (report_on(plugins, "bad").error or "")
    with pytest.raises(PluginError, match=r"plugin 'bad' \(dist-bad 1.0\) could not be loaded"):
        plugins.constructor("bad.op")


def test_a_name_claimed_twice_is_an_error_naming_both_distributions(install):
    first = install("first", REGISTERS.format(name="shared.op"))
    second = install("second", REGISTERS.format(name="shared.op"))
    plugins = discover([second, first])
    with pytest.raises(PluginError, match=r"'shared.op' is registered twice: by dist-first 1.0 and by dist-second 1.0"):
        plugins.constructor("shared.op")


def test_a_blocked_plugin_is_not_imported(install, monkeypatch):
    monkeypatch.setenv(BLOCK_VARIABLE, "other, acme")
    plugins = discover([install("acme", "raise SystemExit('must not be imported')")])
    assert report_on(plugins, "acme").is_blocked
    with pytest.raises(PluginError, match=r"plugin 'acme' \(dist-acme 1.0\) is blocked by ARROYO_BLOCK_PLUGINS"):
        plugins.constructor("acme.op")


def test_an_unknown_operator_is_an_error():
    with pytest.raises(PluginError, match=r"unknown operator 'std.filtre'"):
        discover([]).constructor("std.filtre")


def test_discovery_imports_no_client_library_and_no_spark():
    code = (
        "import sys; from arroyo_core.plugin import installed_plugins; installed_plugins();"
        "print([n for n in ('pyspark', 'datafusion', 's3fs', 'pandas', 'pyarrow.dataset') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


LOOKUP = """
from google.protobuf import struct_pb2
from arroyo_core.api import LookupConstructor
from arroyo_core.plugin import hookimpl

class Constructor(LookupConstructor):
    config_type = struct_pb2.Struct
    def with_config(self, config, registry): raise NotImplementedError

@hookimpl
def arroyo_register(registry):
    registry.add_lookup("acme.lookup", Constructor())
"""


def test_lookups_are_registered_and_reported(install):
    plugins = discover([install("acme", LOOKUP)])
    assert report_on(plugins, "acme").lookups == ("acme.lookup",)
    assert str(plugins.registry.lookup_origin("acme.lookup")) == "dist-acme 1.0"


def test_a_plugin_that_fails_after_its_lookup_registers_nothing(install):
    plugins = discover([install("acme", LOOKUP + "    raise RuntimeError('no')\n")])
    assert report_on(plugins, "acme").error == "RuntimeError: no"
    assert not plugins.registry.lookups


def test_a_lookup_that_two_distributions_claim_is_nobodys(install):
    plugins = discover([install("acme", LOOKUP), install("acme2", LOOKUP)])
    assert "registered twice: by dist-acme 1.0 and by dist-acme2 1.0" in report_on(plugins, "acme2").error
    with pytest.raises(PluginError, match="registered twice"):
        plugins.registry.lookup("acme.lookup")
