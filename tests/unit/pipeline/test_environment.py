import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.pipeline.environment import Environment


def substituted(text, **variables):
    reports = []
    environment = Environment(variables)
    return environment.substitute(text, lambda message, reference: reports.append(reference)), reports, environment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "one"),
        ("x${A}y${B}", "xoney"),
        ("$A", "$A"),
        ("$$", "$"),
        ("$${A}", "${A}"),
        ("$$${A}", "$one"),
        ("${B:-two}", "two"),
        ("${C:-two}", "two"),
        ("${C:-}", ""),
        ("${A:-two}", "one"),
    ],
)
def test_references_are_replaced(text, expected):
    found, reports, _ = substituted(text, A="one", B="")
    assert (found, reports) == (expected, [])


@pytest.mark.parametrize("text", ["${C}", "${}", "${1A}", "${A", "${A-b}"])
def test_references_that_cannot_be_replaced_are_reported(text):
    _, reports, _ = substituted(text, A="one")
    assert len(reports) == 1


@pytest.mark.parametrize(
    "message",
    [
        "wrong: s3cr3t'key",
        f"wrong: {'s3cr3t' + chr(39) + 'key'!r}",
        f"wrong: {json.dumps('s3cr3t' + chr(39) + 'key')}",
        "GET /?token=s3cr3t%27key failed",
        "no column 's3cr3t'",
        "NO COLUMN S3CR3T",
        "at s3cr…",
    ],
)
def test_a_value_and_its_parts_are_hidden_however_they_are_quoted(message):
    _, _, environment = substituted("${TOKEN}", TOKEN="s3cr3t'key")
    assert "s3cr" not in environment.redact(message).lower()
    assert "${TOKEN}" in environment.redact(message)


def test_a_short_value_is_hidden_only_where_it_stands_alone():
    _, _, environment = substituted("${N}", N="2")
    assert environment.redact("2 of 123 columns") == "${N} of 123 columns"


def test_a_default_is_no_secret():
    _, _, environment = substituted("${N:-fallback}")
    assert environment.redact("fallback") == "fallback"


def test_a_value_that_was_not_used_is_not_hidden():
    _, _, environment = substituted("nothing", HOME="somewhere")
    assert environment.redact("somewhere") == "somewhere"


@given(st.text(min_size=1, max_size=20), st.text(max_size=10), st.text(max_size=10))
def test_no_long_value_survives_redaction(value, before, after):
    _, _, environment = substituted("${NAME}", NAME=value)
    shown = environment.redact(f"{before} {value} {after}")
    assert len(value) < 4 or value not in shown or value in "${NAME}"
