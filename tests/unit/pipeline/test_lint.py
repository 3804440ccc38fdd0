import pyarrow as pa
import pytest
from arroyo_devtools.lint import CODES, lint_pipeline
from arroyo_devtools.lint.secrets import describe_secret

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    Guarantee,
    OperatorConstructor,
    Origin,
    Registry,
    SourceFinishType,
    SourceOperator,
    UnboundedState,
)
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import plan_file
from arroyo_core.pipeline.secret_fields import is_secret_name
from arroyo_core.plugin import PluginSet

COLUMNS = ArroyoSchema(pa.schema([("k", pa.int64())]))
AWS_KEY = "AKIA" + "Q" * 16


class Source(SourceOperator):
    """Exactly once, unless it is told otherwise; with `marks` it makes watermarks."""

    def __init__(self, settings):
        self.settings = settings

    def name(self):
        return "l.source"

    def output_schema(self, inputs):
        return COLUMNS

    def run(self, ctx, collector):
        return SourceFinishType.FINAL

    def emits_watermarks(self):
        return bool(self.settings.get("marks"))

    def guarantee(self):
        return Guarantee(self.settings.get("guarantee", "exactly_once"))


class Answering(ArrowOperator):
    """Answers what its config says."""

    def __init__(self, settings):
        self.settings = settings

    def name(self):
        return "l.any"

    def input_count(self):
        return (1, None)

    def output_schema(self, inputs):
        return inputs[0]

    def process_batch(self, batch, ctx, collector):
        collector.collect(batch)

    def side_outputs(self, inputs):
        return {"late": inputs[0]} if self.settings.get("sets_aside") else {}

    def emits_watermarks(self):
        return bool(self.settings.get("marks"))

    def needs_watermark(self, inputs):
        if self.settings.get("fails"):
            raise RuntimeError("no idea")
        return bool(self.settings.get("waits"))

    def unbounded_state(self, inputs):
        reason = self.settings.get("grows")
        if reason == "wrongly":
            return "a text"
        return UnboundedState(f"it keeps {reason} of {len(inputs)}", "keep less") if reason else None


class Sink(Answering):
    def is_sink(self):
        return True

    def guarantee(self):
        return Guarantee(self.settings.get("guarantee", "exactly_once"))

    def guarantee_reason(self):
        return "so it is"


class Constructor(OperatorConstructor):
    def __init__(self, config_type, operator):
        self.config_type = config_type
        self.operator = operator

    def with_config(self, config, registry):
        operator = self.operator(dict(config.settings.items()))
        if isinstance(operator, SourceOperator):
            return ConstructedOperator.from_source(operator)
        return ConstructedOperator.from_operator(operator)


@pytest.fixture
def findings(tmp_path, kitchen_type):
    """The findings of a text as `line:column code message`; `files` lie beside it."""
    registry = Registry()
    with registry.registering(Origin("l-plugin", "1.0")):
        for name, operator in {"source": Source, "any": Answering, "sink": Sink}.items():
            registry.add(f"l.{name}", Constructor(kitchen_type, operator))
    plugins = PluginSet(registry, [])

    def call(text, *, environment=None, files=(), full=False, **given):
        for name, content in dict(files).items():
            (tmp_path / name).write_text(content)
        path = tmp_path / "p.yaml"
        path.write_text(text)
        planned = plan_file(path, plugins=plugins, environment=environment or {}, parameters=given)
        found = lint_pipeline(planned, plugins=plugins)
        if full:
            return found
        places = [f"{finding.at}".replace(f"{tmp_path}/", "").removeprefix("p.yaml:") for finding in found]
        return [f"{place} {finding.code} {finding.message}" for place, finding in zip(places, found, strict=True)]

    return call


def nodes(*rows, head="name: test"):
    """Nodes `id operator inputs settings`, each in a line of its own from line 3 on."""
    lines = [head, "nodes:"]
    for node_id, operator, inputs, *settings in rows:
        config = f", config: {{settings: {{{settings[0]}}}}}" if settings else ""
        lines.append(f"  - {{id: {node_id}, operator: l.{operator}, inputs: [{inputs}]{config}}}")
    return "\n".join(lines) + "\n"


def test_a_good_pipeline_has_no_findings(findings):
    assert findings(nodes(("a", "source", ""), ("b", "any", "a"), ("c", "sink", "b"))) == []


def test_watermarks_must_come_from_every_source(findings):
    rows = [
        ("a", "source", ""),
        ("b", "source", "", "marks: true"),
        ("u", "any", "a, b"),
        ("w", "any", "u", "waits: true"),
    ]
    (found,) = findings(nodes(*rows, ("s", "sink", "w")))
    assert found == (
        "6:23 missing-watermark 'w' (l.any) waits for watermarks, and none come with the rows of 'a': "
        "what it holds back comes when the data ends, if ever"
    )
    rows[2] = ("u", "any", "a, b", "marks: true")
    assert findings(nodes(*rows, ("s", "sink", "w"))) == []


def test_a_watermark_behind_the_operator_is_none_before_it(findings):
    rows = [("a", "source", ""), ("w", "any", "a", "waits: true"), ("m", "any", "w", "marks: true"), ("s", "sink", "m")]
    assert [found.split()[1] for found in findings(nodes(*rows))] == ["missing-watermark"]


def test_many_ways_from_a_source_are_followed_once(findings):
    rows = [("n0", "source", "")]
    rows += [(f"n{i}", "any", f"n{i - 1}, n{i - 1}") for i in range(1, 200)]
    assert len(findings(nodes(*rows, ("w", "any", "n199", "waits: true"), ("s", "sink", "w")))) == 1


def test_an_operator_tells_of_its_state(findings):
    (found,) = findings(nodes(("a", "source", ""), ("b", "any", "a, a", "grows: rows"), ("s", "sink", "b")), full=True)
    assert (found.code, found.fix) == ("unbounded-state", "keep less")
    assert found.message == "the state of 'b' (l.any) has no limit: it keeps rows of 2"


def test_what_came_from_the_environment_is_not_shown(findings):
    text = nodes(("a", "source", ""), ("b", "any", "a", 'grows: "${SECRET}"'), ("s", "sink", "b"))
    (found,) = findings(text, environment={"SECRET": "hunter2"})
    assert "${SECRET}" in found
    assert "hunter2" not in found


@pytest.mark.parametrize(
    ("setting", "words"),
    [("fails: true", "needs_watermark() failed with RuntimeError: no idea"), ("grows: wrongly", "not UnboundedState")],
)
def test_an_operator_that_cannot_answer_is_a_fault_of_its_plugin(findings, setting, words):
    with pytest.raises(InvalidPipelineError, match=r"this is a fault of l-plugin 1\.0") as caught:
        findings(nodes(("a", "source", ""), ("b", "any", "a", setting), ("s", "sink", "b")))
    assert words in str(caught.value)


def test_a_side_output_that_is_asked_for_wants_a_reader(findings):
    rows = [("a", "source", ""), ("b", "any", "a", "sets_aside: true"), ("s", "sink", "b")]
    (found,) = findings(nodes(*rows))
    assert found.startswith("4:23 unread-output no node reads b.late")
    assert findings(nodes(*rows, ("t", "sink", "b.late"))) == []


@pytest.mark.parametrize(
    ("head", "source", "sinks", "weak"),
    [
        ("checkpoint: {url: ./x}", "exactly_once", ["at_least_once"], ["s0"]),
        ("checkpoint: {url: ./x}", "exactly_once", ["exactly_once", "at_least_once", "none"], ["s1", "s2"]),
        ("checkpoint: {url: ./x}", "exactly_once", ["exactly_once"], []),
        ("checkpoint: {url: ./x}", "none", ["at_least_once"], []),
        ("parallelism: 1", "exactly_once", ["at_least_once"], []),
        ("parallelism: 1", "exactly_once", ["at_least_once", "exactly_once"], ["s0"]),
    ],
)
def test_a_weak_sink_is_found_where_all_else_is_exact_and_durable(findings, head, source, sinks, weak):
    rows = [(f"s{i}", "sink", "a", f"guarantee: {level}") for i, level in enumerate(sinks)]
    found = findings(nodes(("a", "source", "", f"guarantee: {source}"), *rows, head=f"{head}\nname: test"))
    assert [line.split("'")[1] for line in found] == weak
    assert all(" weak-sink " in line for line in found)


def test_unused_parameters_are_found(findings):
    text = nodes(("a", "source", ""), ("s", "sink", "a"), head='name: "x${used}"')
    text += "parameters:\n  used: {default: 1}\n  idle: {default: 2}\n"
    assert findings(text) == ["7:3 unused-parameter nothing uses the parameter 'idle'"]


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "dbPassword",
        "sasl.password",
        "SECRET",
        "api_key",
        "apiKey",
        "secretAccessKey",
        "aws-secret-key",
        "auth.token",
    ],
)
def test_names_of_secrets(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["key", "keys", "tokens", "token_url", "secret_name", "password_file", "max_tokens", "k"]
)
def test_names_that_only_look_so(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:hunter2@host/db",
        "redis://:hunter2@host",
        "https://host/x?token=abc&y=1",
        "host=db password=hunter2",
        "DefaultEndpointsProtocol=https;AccountKey=abc==;",
        AWS_KEY,
        f"key {AWS_KEY} of somebody",
        "ghp_" + "a" * 36,
        "-----BEGIN RSA PRIVATE KEY-----\nabc",
    ],
)
def test_texts_that_hold_a_secret(text):
    assert describe_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:${PASSWORD}@host/db",
        "postgres://user@host/db",
        "s3://bucket/a:b@c",
        "https://host:8080/x",
        "https://host/x?token=${TOKEN}",
        "password = 'x'",
        "password='x'",
        AWS_KEY.lower(),
        "price > 100",
    ],
)
def test_texts_that_hold_none(text):
    assert describe_secret(text) is None


def test_secrets_are_found_with_their_place_and_not_shown(findings):
    text = nodes(("a", "source", ""), ("b", "any", "a", "password: hunter2, flag_secret: true"), ("s", "sink", "b"))
    text += "checkpoint: {url: 's3://me:hunter2@host/x'}\n"
    found = findings(text, full=True)
    assert [(finding.at.line, finding.code) for finding in found] == [(4, "secret-in-clear"), (6, "secret-in-clear")]
    assert not any("hunter2" in finding.message + finding.fix or finding.shows_line for finding in found)


@pytest.mark.parametrize("comment", ["", "  # arroyo: ignore[secret-in-clear]"])
def test_a_line_with_a_secret_is_not_shown_for_what_else_is_in_it(findings, comment):
    rows = [("a", "source", ""), ("b", "any", "a", "password: hunter2, grows: rows"), ("s", "sink", "b")]
    lines = nodes(*rows).splitlines()
    lines[3] += comment
    found = findings("\n".join(lines), full=True)
    assert [finding.code for finding in found][:1] == ["unbounded-state"]
    assert not any(finding.shows_line for finding in found)


@pytest.mark.parametrize(
    ("config", "count"),
    [
        ("expressions: {password: upper(x)}", 0),
        ("expressions: [{name: token, sql: x}]", 0),
        (f"expressions: {{a: {AWS_KEY}}}", 1),
        ("nested: {column: x}", 0),
        ("by_name: {password: 1}", 1),
        ("text: ${PASSWORD}", 0),
        ('settings: {password: "${PASSWORD}"}', 0),
        ('settings: {password: "x-${PASSWORD}"}', 0),
        ("settings: {password: ''}", 0),
        ('settings: {password: "${secret}"}', 0),
        ("settings: {deep: [{token: x}]}", 1),
    ],
)
def test_names_of_columns_and_references_are_no_secrets(findings, config, count):
    text = nodes(("a", "source", ""), ("s", "sink", "b")).replace(
        "nodes:\n", f"nodes:\n  - id: b\n    operator: l.any\n    inputs: [a]\n    config:\n      {config}\n"
    )
    text += "parameters: {secret: {default: ''}}\n"
    found = findings(text, environment={"PASSWORD": "hunter2"}, secret="hunter2")
    assert sum(" secret-in-clear " in line for line in found) == count


def test_a_default_is_a_secret_by_the_name_of_its_parameter(findings):
    text = nodes(("a", "source", ""), ("s", "sink", "a"), head='name: "x${api_key}"')
    assert [line.split()[1] for line in findings(text + "parameters: {api_key: {default: abc}}\n")] == [
        "secret-in-clear"
    ]


def test_a_comment_silences_its_line_and_its_code(findings):
    rows = [("a", "source", ""), ("b", "any", "a", "grows: rows, waits: true"), ("s", "sink", "b")]
    lines = nodes(*rows).splitlines()
    lines[3] += "  # arroyo: ignore[unbounded-state]"
    assert [line.split()[1] for line in findings("\n".join(lines))] == ["missing-watermark"]
    lines[3] += " and why"
    lines[3] = lines[3].replace("state]", "state, missing-watermark]")
    assert findings("\n".join(lines)) == []


def test_a_comment_in_an_included_file_counts_there(findings):
    text = nodes(("a", "source", ""), ("s", "sink", "b")) + "  - !include b.yaml\n"
    node = "id: b\noperator: l.any{}\ninputs: [a]\nconfig: {{settings: {{grows: rows}}}}\n"
    (found,) = findings(text, files={"b.yaml": node.format("")})
    assert found.startswith("b.yaml:2:11 unbounded-state")
    assert findings(text, files={"b.yaml": node.format("  # arroyo: ignore[unbounded-state]")}) == []


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# arroyo: ignore[weak-sink]", "there is no weak-sink in this line"),
        ("# so: arroyo: ignore[weak-snik]", "there is no code 'weak-snik'"),
        ("# arroyo: ignore", "this comment silences nothing"),
        ("# arroyo: ignore[]", "this comment silences nothing"),
    ],
)
def test_a_comment_that_silences_nothing_is_found(findings, comment, message):
    text = nodes(("a", "source", ""), ("s", "sink", "a"))
    (found,) = findings(text + comment + "\n")
    assert found == f"5:{comment.index('arroyo') + 1} unused-ignore {message}"


def test_a_comment_inside_a_string_is_none(findings):
    text = nodes(
        ("a", "source", ""), ("b", "any", "a", 'grows: "# arroyo: ignore[unbounded-state]"'), ("s", "sink", "b")
    )
    assert [line.split()[1] for line in findings(text)] == ["unbounded-state"]


def test_every_code_is_one_that_a_comment_can_name():
    assert all(code == code.strip().lower() and "," not in code and "]" not in code for code in CODES)
