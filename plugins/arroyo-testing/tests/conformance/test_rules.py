"""Rules that plugins add to the kit."""

from __future__ import annotations

from types import ModuleType

import pytest
from arroyo_testing.conformance import Conformance, ConformanceError, OperatorCase, Rule, StorageCase
from arroyo_testing.conformance import rules as rules_module

from arroyo_core.api import Origin, Registry
from arroyo_core.plugin import PluginSet, hookimpl
from arroyo_core.state import StorageProvider


def plugins_with(*rules):
    module = ModuleType("acme_rules")

    def arroyo_conformance():
        return list(rules)

    arroyo_conformance.__module__ = module.__name__
    module.arroyo_conformance = hookimpl(arroyo_conformance)
    plugins = PluginSet(Registry(), [])
    plugins.hooks.register(module, Origin("acme-rules", "1.0"))
    return plugins


def refuse(case, registry):
    raise ConformanceError(f"{case.name} is refused")


@pytest.fixture
def suite(tmp_path):
    return Conformance(None, [StorageCase("files", lambda: StorageProvider(str(tmp_path)))])


def test_a_rule_is_a_check_of_every_case_of_its_types(monkeypatch, suite):
    plugins = plugins_with(
        Rule(name="acme_refuses", cases=(StorageCase,), check=refuse),
        Rule(name="acme_other", cases=(OperatorCase,), check=refuse),
    )
    monkeypatch.setattr(rules_module, "installed_plugins", lambda: plugins)
    names = [check.name for check in suite.checks()]
    assert "acme_refuses" in names
    assert "acme_other" not in names
    with pytest.raises(ConformanceError, match="files is refused"):
        suite.checks()[names.index("acme_refuses")].run()


def test_a_rule_cannot_take_the_name_of_another(monkeypatch, suite):
    plugins = plugins_with(Rule(name="put_if_absent", cases=(StorageCase,), check=refuse))
    monkeypatch.setattr(rules_module, "installed_plugins", lambda: plugins)
    with pytest.raises(ValueError, match="there is a check 'put_if_absent' already"):
        suite.checks()
