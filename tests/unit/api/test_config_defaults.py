"""A default stands in the option of its field, and is what the message holds where nothing was written."""

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format, timestamp_pb2

from arroyo_core.api import with_defaults
from arroyo_core.api.config_defaults import OptionError, default_value
from arroyo_core.proto import options_pb2

FILE = """
name: "tests/defaults.proto" package: "tests_defaults" syntax: "proto3"
dependency: ["arroyo_core/proto/options.proto", "google/protobuf/timestamp.proto"]
enum_type { name: "Mood" value { name: "MOOD_UNSPECIFIED" number: 0 } value { name: "MOOD_EAGER" number: 1 } }
message_type { name: "Inner"
  field { name: "size" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL
    options { [arroyo_core.size]: true [arroyo_core.default]: "64MiB" } }
  field { name: "other" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "Config"
  oneof_decl { name: "lateness" } oneof_decl { name: "_ttl" } oneof_decl { name: "_is_on" }
  field { name: "ttl" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL proto3_optional: true oneof_index: 1
    options { [arroyo_core.duration]: true [arroyo_core.default]: "24h" } }
  field { name: "column" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL options { [arroyo_core.default]: "count" } }
  field { name: "mood" number: 3 type: TYPE_ENUM type_name: ".tests_defaults.Mood" label: LABEL_OPTIONAL
    options { [arroyo_core.default]: "eager" } }
  field { name: "is_on" number: 4 type: TYPE_BOOL label: LABEL_OPTIONAL proto3_optional: true oneof_index: 2
    options { [arroyo_core.default]: "true" } }
  field { name: "ratio" number: 5 type: TYPE_DOUBLE label: LABEL_OPTIONAL options { [arroyo_core.default]: "0.5" } }
  field { name: "since" number: 6 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL
    options { [arroyo_core.default]: "2026-01-31T12:00:00Z" } }
  field { name: "always" number: 7 type: TYPE_MESSAGE type_name: ".tests_defaults.Inner" label: LABEL_OPTIONAL
    options { [arroyo_core.default]: "{}" } }
  field { name: "seldom" number: 8 type: TYPE_MESSAGE type_name: ".tests_defaults.Inner" label: LABEL_OPTIONAL }
  field { name: "many" number: 9 type: TYPE_MESSAGE type_name: ".tests_defaults.Inner" label: LABEL_REPEATED }
  field { name: "by_name" number: 10 type: TYPE_MESSAGE type_name: ".tests_defaults.Config.ByNameEntry"
    label: LABEL_REPEATED }
  field { name: "max_lateness" number: 11 type: TYPE_INT64 label: LABEL_OPTIONAL oneof_index: 0
    options { [arroyo_core.duration]: true [arroyo_core.default]: "1s" } }
  field { name: "expression" number: 12 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "plain" number: 13 type: TYPE_INT32 label: LABEL_OPTIONAL }
  nested_type { name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".tests_defaults.Inner" label: LABEL_OPTIONAL } }
}
message_type { name: "Wrong"
  field { name: "lapse" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL
    options { [arroyo_core.duration]: true [arroyo_core.default]: "10" } }
  field { name: "mood" number: 2 type: TYPE_ENUM type_name: ".tests_defaults.Mood" label: LABEL_OPTIONAL
    options { [arroyo_core.default]: "lazy" } }
  field { name: "words" number: 3 type: TYPE_STRING label: LABEL_REPEATED options { [arroyo_core.default]: "a" } }
  field { name: "retries" number: 4 type: TYPE_INT32 label: LABEL_OPTIONAL
    options { [arroyo_core.least]: 1 [arroyo_core.default]: "0" } }
  field { name: "flag" number: 5 type: TYPE_BOOL label: LABEL_OPTIONAL options { [arroyo_core.default]: "yes" } }
  field { name: "inner" number: 6 type: TYPE_MESSAGE type_name: ".tests_defaults.Inner" label: LABEL_OPTIONAL
    options { [arroyo_core.default]: "{size: 1}" } }
}
"""


def messages():
    # Importing a module is what makes its file known to the pool.
    assert options_pb2.DESCRIPTOR
    assert timestamp_pb2.DESCRIPTOR
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(text_format.Parse(FILE, descriptor_pb2.FileDescriptorProto()).SerializeToString())
    names = ("Config", "Inner", "Wrong")
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tests_defaults.{name}")) for name in names]


Config, Inner, Wrong = messages()


def test_what_is_not_set_gets_its_default():
    config = with_defaults(Config())
    assert config.ttl == 24 * 3_600_000_000
    assert config.column == "count"
    assert config.mood == 1
    assert config.is_on
    assert config.ratio == 0.5
    assert config.since.ToJsonString() == "2026-01-31T12:00:00Z"
    assert config.max_lateness == 1_000_000
    assert config.plain == 0


def test_what_is_set_stays():
    written = Config(ttl=0, is_on=False, column="n", max_lateness=0, always=Inner(size=1))
    config = with_defaults(written)
    assert (config.ttl, config.is_on, config.column, config.max_lateness, config.always.size) == (0, False, "n", 0, 1)


def test_the_config_that_is_given_is_not_changed():
    written = Config()
    with_defaults(written)
    assert written == Config()


def test_a_message_is_there_only_where_that_is_its_default_and_has_its_own_defaults():
    config = with_defaults(Config(many=[Inner(other="x"), Inner(size=5)], by_name={"a": Inner()}))
    assert config.always.size == 64 * 2**20
    assert not config.HasField("seldom")
    assert [each.size for each in config.many] == [64 * 2**20, 5]
    assert config.by_name["a"].size == 64 * 2**20
    assert with_defaults(Config(seldom=Inner(other="x"))).seldom.size == 64 * 2**20


def test_of_fields_that_exclude_each_other_one_that_is_written_is_all():
    config = with_defaults(Config(expression="at"))
    assert config.WhichOneof("lateness") == "expression"


def test_defaults_are_applied_once():
    once = with_defaults(Config(many=[Inner()]))
    assert with_defaults(once) == once


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lapse", "cannot have the default '10': duration '10' has no unit"),
        ("mood", "cannot have the default 'lazy': it must be one of eager"),
        ("words", "is repeated, so it cannot have a default"),
        ("retries", "the default '0' of field tests_defaults.Wrong.retries is out of the range"),
        ("flag", "it must be one of true, false"),
        ("inner", "an? Inner can only have {}"),
    ],
)
def test_a_default_that_its_field_cannot_have_is_refused(name, message):
    with pytest.raises(OptionError, match=message):
        default_value(Wrong.DESCRIPTOR.fields_by_name[name])
    with pytest.raises(OptionError):
        with_defaults(Wrong())
