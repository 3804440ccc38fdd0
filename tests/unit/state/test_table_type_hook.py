"""A type of tables comes with a plugin, through its hook."""

from __future__ import annotations

from types import ModuleType

import pytest

from arroyo_core.api import Origin, Registry
from arroyo_core.errors import StateError
from arroyo_core.plugin import PluginSet, hookimpl
from arroyo_core.state import table_types

from .support.counters_plugin.acme_counters import CountersTable


def plugins_with(*tables):
    module = ModuleType("acme_tables")

    def arroyo_table_type():
        return list(tables)

    module.arroyo_table_type = hookimpl(arroyo_table_type)
    plugins = PluginSet(Registry(), [])
    plugins.hooks.register(module, Origin("acme-tables", "1.0"))
    return plugins


@pytest.fixture(autouse=True)
def own_types(monkeypatch):
    monkeypatch.setattr(table_types, "_TYPES", dict(table_types._TYPES))
    table_types._TYPES.pop(CountersTable.table_type, None)


def test_a_type_is_found_when_it_is_met(monkeypatch):
    monkeypatch.setattr(table_types, "installed_plugins", lambda: plugins_with(CountersTable))
    assert table_types.table_class(CountersTable.table_type) is CountersTable
    assert table_types.type_name(CountersTable.table_type) == CountersTable.type_name


def test_without_the_plugin_the_error_says_so(monkeypatch):
    monkeypatch.setattr(table_types, "installed_plugins", lambda: plugins_with())
    with pytest.raises(StateError, match=f"no table type {CountersTable.table_type} here: install the plugin"):
        table_types.table_class(CountersTable.table_type)
