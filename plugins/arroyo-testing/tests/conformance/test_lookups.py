"""Tables to look rows up in that keep the rules pass; those that do not are caught."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arroyo_testing.conformance import Conformance, ConformanceError, LookupCase, NotApplicable
from google.protobuf import struct_pb2

from arroyo_core.api import KeyedLookupTable, LookupConstructor, LookupTable, Registry
from arroyo_core.errors import DataError

ROWS = pa.table({"id": pa.array([1, 2, 2, None], pa.int64()), "city": ["Oslo", "Rome", None, "Bonn"]})


class Whole(LookupTable):
    def name(self):
        return "cities"

    def cache_key(self):
        return "cities"

    def schema(self):
        return ROWS.schema

    def read(self, schema, max_bytes):
        if max_bytes < ROWS.nbytes:
            raise DataError("too large")
        return ROWS


class Keyed(KeyedLookupTable):
    def name(self):
        return "cities"

    def cache_key(self):
        return "cities"

    def schema(self):
        return ROWS.schema

    def find(self, keys, schema):
        # Of one column; rows of other keys may come.
        (name,) = keys.schema.names
        return ROWS.filter(pc.is_in(ROWS.column(name), value_set=keys.column(name)))


def suite(made):
    class Constructor(LookupConstructor):
        config_type = struct_pb2.Struct

        def with_config(self, config, registry):
            return made()

    registry = Registry()
    registry.add_lookup("acme.cities", Constructor())
    found = Conformance(None, [LookupCase("acme.cities", {"a": 1}, rows=ROWS, keys=["id"])])
    found.__dict__["registry"] = registry
    return found


def check(made, name):
    (found,) = [each for each in suite(made).checks() if each.name == name]
    found.run()


@pytest.mark.parametrize("made", [Whole, Keyed])
def test_a_table_that_keeps_the_rules_passes(made):
    skipped = set()
    for each in suite(made).checks():
        try:
            each.run()
        except NotApplicable:
            skipped.add(each.name)
    assert skipped == ({"has_a_limit"} if made is Keyed else {"knows_what_is_not_there", "takes_many_keys"})


def broken(base, **methods):
    return type("Broken", (base,), methods)


@pytest.mark.parametrize(
    ("made", "name", "message"),
    [
        (broken(Whole, read=lambda self, schema, most: ROWS.slice(1)), "finds_all_rows", "has other rows when it is"),
        (broken(Whole, read=lambda self, schema, most: ROWS), "has_a_limit", "returns more than max_bytes"),
        (broken(Whole, name=lambda self: ""), "describes_itself", r"name\(\) is ''"),
        (broken(Whole, cache_key=lambda self: []), "describes_itself", "cannot be hashed"),
        (broken(Whole, cache_key=lambda self: object()), "describes_itself", "of the same config again"),
        (broken(Whole, schema=lambda self: ROWS.select(["id"]).schema), "schema", "and its rows have"),
        (broken(Keyed, find=lambda self, keys, schema: ROWS.slice(0, 1)), "finds_all_rows", "for all keys at once"),
        (
            broken(Keyed, find=lambda self, keys, schema: Keyed.find(self, keys.slice(0, 999), schema)),
            "takes_many_keys",
            "when it is asked for 70002 keys",
        ),
        (
            broken(Keyed, find=lambda self, keys, schema: pa.concat_tables([ROWS.slice(0, 3)] * min(2, len(keys)))),
            "finds_all_rows",
            "has other rows",
        ),
        (
            broken(Keyed, find=lambda self, keys, schema: Keyed.find(self, keys, schema).select(["city"])),
            "finds_all_rows",
            "and was asked for",
        ),
        (
            broken(Keyed, find=lambda self, keys, schema: pa.table({**keys.to_pydict(), "city": ["?"] * len(keys)})),
            "knows_what_is_not_there",
            "keys that it has not",
        ),
    ],
)
def test_what_breaks_a_rule_is_caught(made, name, message):
    with pytest.raises(ConformanceError, match=message):
        check(made, name)


def test_a_table_that_no_join_can_ask_is_caught():
    with pytest.raises(ConformanceError, match="no join can ask it"):
        check(lambda: type("Neither", (), {})(), "describes_itself")


def test_a_config_that_is_changed_is_caught():
    class Constructor(LookupConstructor):
        config_type = struct_pb2.Struct

        def resolve(self, config):
            config["b"] = 2
            return config

        def with_config(self, config, registry):
            return Whole()

    found = suite(Whole)
    registry = Registry()
    registry.add_lookup("acme.cities", Constructor())
    found.__dict__["registry"] = registry
    (one,) = [each for each in found.checks() if each.name == "leaves_its_config"]
    with pytest.raises(ConformanceError, match=r"resolve\(\) of acme.cities changes its config"):
        one.run()
