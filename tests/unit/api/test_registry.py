"""Lookups in a registry: names, origins, and what happens to one that two claim."""

from __future__ import annotations

import pytest
from google.protobuf import struct_pb2

from arroyo_core.api import LookupConstructor, OperatorConstructor, Origin, Registry
from arroyo_core.errors import PluginError

ACME, OTHER = Origin("acme", "1.0"), Origin("other", "2.0")


class Constructor(LookupConstructor):
    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        raise NotImplementedError


class Operators(OperatorConstructor):
    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        raise NotImplementedError


@pytest.fixture
def registry():
    registry = Registry()
    with registry.registering(ACME):
        registry.add_lookup("acme.lookup", Constructor())
    return registry


def test_a_lookup_is_found_by_its_name_with_who_brought_it(registry):
    assert isinstance(registry.lookup("acme.lookup"), Constructor)
    assert list(registry.lookups) == ["acme.lookup"]
    assert registry.lookup_origin("acme.lookup") == ACME


def test_a_lookup_that_nobody_brought_is_an_error(registry):
    with pytest.raises(PluginError, match=r"there is no lookup 'acme\.table'"):
        registry.lookup("acme.table")


@pytest.mark.parametrize("name", ["lookup", "acme.", "a.b.c", "acme.two words"])
def test_the_name_of_a_lookup_has_two_parts(registry, name):
    with pytest.raises(PluginError, match=r"is not of the form 'plugin\.lookup'"):
        registry.add_lookup(name, Constructor())


def test_a_name_that_is_taken_names_both(registry):
    with (
        registry.registering(OTHER),
        pytest.raises(PluginError, match=r"'acme.lookup' is registered twice: by acme 1\.0 and by other 2\.0"),
    ):
        registry.add_lookup("acme.lookup", Constructor())


def test_an_operator_may_have_the_name_of_a_lookup(registry):
    registry.add("acme.lookup", Operators())
    assert registry.lookup_origin("acme.lookup") == ACME


def test_a_withdrawn_lookup_says_why_and_stays_taken(registry):
    registry.withdraw_lookup("acme.lookup", "two claim it")
    copy = registry.with_udfs([])
    for each in (registry, copy):
        assert not each.lookups
        with pytest.raises(PluginError, match="two claim it"):
            each.lookup("acme.lookup")
        with pytest.raises(PluginError, match="registered twice"):
            each.add_lookup("acme.lookup", Constructor())


def test_a_copy_with_functions_has_the_lookups(registry):
    copy = registry.with_udfs([])
    copy.add_lookup("acme.more", Constructor())
    assert list(copy.lookups) == ["acme.lookup", "acme.more"]
    assert list(registry.lookups) == ["acme.lookup"]
    assert copy.lookup_origin("acme.lookup") == ACME
