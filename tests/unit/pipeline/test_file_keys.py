"""The reader, the schema, the reference and the formatter know the same keys, from one definition."""

import pytest
from arroyo_devtools.formatting import format_text
from arroyo_devtools.schema import pipeline_schema

from arroyo_core.api import Registry
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.file_keys import CHECKPOINT, NODE, PIPELINE, UDF, Duration, Other, Part, Section, Text, Whole
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.plan import CheckpointSpec
from arroyo_core.pipeline.spec import read_form, read_spec
from arroyo_core.plugin import PluginSet

SECTIONS = {"pipeline": PIPELINE, "node": NODE, "checkpoint": CHECKPOINT, "udf": UDF}
KEYS = [(name, key) for name, section in SECTIONS.items() for key in section.keys]


def read(text, form):
    mistakes = Mistakes()
    value = load_document(text, file="p.yaml", environment=Environment({}), mistakes=mistakes)
    return read_form(form, value, "'it'", mistakes), [error.message for error in mistakes.sorted()]


def written_spec(text):
    mistakes = Mistakes()
    root = load_document(text, file="p.yaml", environment=Environment({}), mistakes=mistakes)
    spec = read_spec(root, mistakes)
    mistakes.raise_if_any()
    return spec


@pytest.mark.parametrize(("section", "key"), KEYS, ids=[f"{section}.{key.name}" for section, key in KEYS])
def test_the_schema_tells_every_key(section, key):
    schema = pipeline_schema(PluginSet(Registry(), []))
    places = {
        "pipeline": schema,
        "node": schema["definitions"]["node"],
        "checkpoint": schema["properties"]["checkpoint"],
        "udf": schema["properties"]["udfs"]["items"],
    }
    told = places[section]["properties"][key.name]
    assert (told.get("description") or told["$comment"]).startswith(key.text)
    assert (key.name in places[section].get("required", ())) == key.is_required
    if key.default is not None:
        assert read(str(told["default"]), key.form) == (key.default, [])
    # A form of its own is told by whoever makes the schema; only the config is left to its operator.
    assert {"type", "anyOf"} & told.keys() or key.name == "config"


def test_what_is_not_written_has_the_defaults_of_the_definition():
    spec = written_spec("name: x\ncheckpoint: {rows: 5}\nnodes: [{id: a, operator: t.source}]\n")
    assert spec.parallelism == PIPELINE.key("parallelism").default == 1
    assert spec.checkpoint == CheckpointSpec(rows=5)
    assert spec.checkpoint.interval_ms * 1_000 == CHECKPOINT.key("interval").default


@pytest.mark.parametrize(
    ("section", "indent", "head"), [(PIPELINE, "", ""), (NODE, "    ", "name: x\nnodes:\n")], ids=["pipeline", "node"]
)
def test_the_formatter_puts_keys_in_the_order_of_the_definition(section, indent, head):
    samples = {
        "name": "x",
        "parallelism": "2",
        "checkpoint": "{rows: 5}",
        "nodes": "[{id: a, operator: t.source}]",
        "id": "a",
        "operator": "t.source",
        "inputs": "[b]",
    }
    lines = [f"{indent}{name}: {samples.get(name, '{}')}" for name in reversed(section.names)]
    text = head + "\n".join(lines) + "\n"
    if section is NODE:
        text = text.replace("    ", "  - ", 1)
    formatted = format_text(text, file="p.yaml")
    found = [line.strip(" -").partition(":")[0] for line in formatted.splitlines()]
    order = [found.index(name) for name in section.names]
    assert order == sorted(order)


def test_a_form_says_what_it_does_not_allow():
    assert read("5", Whole(1, 4)) == (None, ["'it' must be between 1 and 4"])
    assert read("1ms", Duration(1_000_000)) == (None, ["'it' must be at least 1s"])
    assert read("''", Text(is_filled=True)) == ("", ["'it' must not be empty"])


@pytest.mark.parametrize("form", [Part(Section(())), Other()])
def test_a_form_with_a_reader_of_its_own_is_not_read_here(form):
    with pytest.raises(TypeError, match="a reader of its own"):
        read("{}", form)
