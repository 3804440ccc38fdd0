"""Comments are prose; what they say in a fixed form is found again."""

import pytest
from arroyo_devtools.schema.prose import FieldText, first_sentence, read_field_text, read_operator_text


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("How long a window is.", FieldText(description="How long a window is.")),
        ("How long. Default: 10s.", FieldText(description="How long.", default="10s")),
        ("Default: 1.5.", FieldText(default="1.5")),
        (
            "How long a key\nis kept. Default: 24h; 0 for\nnever. Then it goes.",
            FieldText(description="How long a key is kept. Then it goes.", default="24h", remark="0 for never"),
        ),
        (
            "At first. Default: 2015-07-15T00:00:00Z.",
            FieldText(description="At first.", default="2015-07-15T00:00:00Z"),
        ),
        ("The Default: is not a sentence", FieldText(description="The Default: is not a sentence")),
        ("One.\n\nTwo.", FieldText(description="One.\n\nTwo.")),
    ],
)
def test_a_default_is_taken_out_of_the_comment_of_a_field(comment, expected):
    assert read_field_text(comment) == expected


def test_an_operator_text_has_a_summary_paragraphs_sections_and_an_example():
    text = read_operator_text(
        "`acme.count`: counts\nrows.\n\nMore of it.\n\nState: a table `t`,\nby key.\nOutput: rows.\n\n"
        "And more.\n\nExample:\n\n  - id: a\n    operator: acme.count\n"
    )
    assert text.summary == "Counts rows."
    assert text.paragraphs == ("More of it.", "And more.")
    assert text.sections == (("Output", "rows."), ("State", "a table `t`, by key."))
    assert text.example == "- id: a\n  operator: acme.count"


def test_no_comment_is_no_text():
    assert read_operator_text("").summary == ""
    assert read_field_text("") == FieldText()


def test_a_full_stop_inside_a_word_ends_no_sentence():
    assert first_sentence("Runs `std.filter` once. Then twice.") == "Runs `std.filter` once."
