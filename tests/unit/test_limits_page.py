"""Limits are declared in modules `limits`, and docs/limits.md has every one of them."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from arroyo_core.api.limits import PREFIX, Limit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")


def limits_modules():
    for file in sorted([*ROOT.glob("arroyo_core/**/limits.py"), *ROOT.glob("plugins/arroyo-*/src/**/limits.py")]):
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[3:] if parts[0] == "plugins" else parts)
        yield importlib.import_module(name)


MODULES = list(limits_modules())


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_page_has_every_limit_of_a_module(module):
    declared = [value for value in vars(module).values() if isinstance(value, Limit)]
    assert {id(limit) for limit in declared} == {id(limit) for limit in module.LIMITS}
    rows = [f"| {limit.text} | {limit.what} | `{limit.variable}` |" for limit in module.LIMITS]
    assert "\n".join(rows) in PAGE


def test_no_two_limits_share_a_variable_and_all_reach_workers():
    variables = [limit.variable for module in MODULES for limit in module.LIMITS]
    assert len(MODULES) >= 4
    assert len(set(variables)) == len(variables)
    assert all(name.startswith((PREFIX, "ARROYO_UNTRUSTED_")) for name in variables)
