"""A default has one home, the option of its field: no comment states one that the option does not have."""

import importlib
import re

import pytest
from arroyo_devtools.schema import describe_operators
from arroyo_devtools.schema.prose import read_field_text
from google.protobuf.struct_pb2 import Value

from arroyo_core.api.config_defaults import OptionError, default_text, default_value, parse_value
from arroyo_core.pipeline.comments import read_comments
from arroyo_core.pipeline.field_options import choices_of, is_map, writable_fields
from arroyo_core.plugin import installed_plugins
from arroyo_core.proto import options_pb2

from .conftest import ROOT


def template_messages():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "plugins" / "_template" / "src")
        module = importlib.import_module("arroyo_template.config_pb2")
    return [module.RunningCountConfig, module.SqliteUpsertConfig]


def fields():
    """Every field of every config, and of the messages in it, with its comment."""
    types = [doc.config_type for doc in describe_operators(installed_plugins()).values()] + template_messages()
    found = {}
    for config_type in types:
        comments = read_comments(config_type)
        descriptors = [config_type.DESCRIPTOR]
        for descriptor in descriptors:
            for field in writable_fields(descriptor).values():
                found[field.full_name] = (field, comments.get(field.full_name, ""))
                if field.message_type is not None and field.message_type not in descriptors:
                    descriptors.append(field.message_type)
    return found


def states_a_value(field, words):
    """Whether words would be a value of the field, and do not only describe what happens."""
    if field.is_repeated:
        return words in ("[]", "{}")
    if re.fullmatch(r"`[^`]*`", words):
        return True
    choices = choices_of(field, options_pb2.choices)
    if choices is not None:
        return words in choices.values_by_name
    try:
        value = parse_value(field, words)
    except ValueError:
        return False
    # Any words are a text.
    return not isinstance(value, str | Value)


FIELDS = fields()


def test_there_are_fields_with_defaults():
    assert sum(default_text(field) is not None for field, _ in FIELDS.values()) > 70


@pytest.mark.parametrize("name", FIELDS)
def test_a_comment_states_no_default_that_the_option_does_not_have(name):
    field, comment = FIELDS[name]
    text = read_field_text(comment)
    if default_text(field) is not None:
        assert not text.default, f"{name}: the option has the default, so the comment must not say 'Default:'"
    assert not states_a_value(field, text.default), f"{name}: give {text.default} as (arroyo_core.default)"


@pytest.mark.parametrize("name", [name for name, (field, _) in FIELDS.items() if default_text(field) is not None])
def test_every_default_is_one_that_may_be_written(name):
    field, _ = FIELDS[name]
    assert not is_map(field)
    try:
        default_value(field)
    except OptionError as error:
        pytest.fail(str(error))
    choices = choices_of(field, options_pb2.choices)
    if choices is not None:
        assert default_text(field) in choices.values_by_name
