import pytest

from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import plan_text
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.loader import load_document
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.wellknown import plain
from arroyo_core.pipeline.written import load_pipeline

TEXT = """\
name: test
parallelism: ${width}
nodes:
  - {id: a, operator: t.source}
  - id: b
    operator: t.kitchen
    inputs: [a]
    config: {count: "${rate}", text: "up to ${rate}", flag: "${fast}", max_lateness: "${wait}", anything: "${rate}"}
  - {id: c, operator: t.sink, inputs: [b]}
parameters:
  width: {default: 2}
  rate: {default: 1000, type: int, description: rows each second}
  fast: {default: false}
  wait: {default: 5s, type: duration}
"""


@pytest.fixture
def plan(plugins):
    def call(text=TEXT, environment=None, **given):
        return plan_text(text, file="p.yaml", plugins=plugins, environment=environment or {}, parameters=given)

    return call


@pytest.fixture
def mistakes(plan):
    def call(text=TEXT, environment=None, **given):
        with pytest.raises(InvalidPipelineError) as caught:
            plan(text, environment, **given)
        return [str(error) for error in caught.value.errors]

    return call


def declared(line):
    """A pipeline with one declaration in line 3, which is used nowhere."""
    return f"name: test\nparameters:\n  {line}\nnodes:\n  - {{id: a, operator: t.source}}\n" + (
        "  - {id: b, operator: t.sink, inputs: [a]}\n"
    )


def written_out(rate, fast, wait, width):
    head, _, _ = TEXT.partition("parameters:")
    texts = {'"${rate}", text': f"{rate}, text", '"${rate}"}': f"{rate}}}", "up to ${rate}": f"up to {rate}"}
    texts |= {'"${fast}"': fast, '"${wait}"': wait, "${width}": str(width)}
    for reference, text in texts.items():
        head = head.replace(reference, text)
    assert "${" not in head
    return head


def test_defaults_stand_where_nothing_is_given(plan):
    assert plan() == plan(written_out(1000, "false", "5s", 2))


def test_a_given_value_gives_the_plan_of_a_text_that_has_it(plan):
    given = plan(rate="7", fast="true", wait="1m", width="3")
    assert given == plan(written_out(7, "true", "1m", 3))
    assert given != plan()


def test_python_gives_values_of_their_own_types(plan):
    assert plan(rate=7, fast=True, wait="1m", width=3) == plan(rate="7", fast="true", wait="1m", width="3")


def test_a_whole_number_may_be_written_as_a_float(plan):
    assert plan(rate="1e3") == plan(rate="1000")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rate", "fast", "the value given for parameter 'rate' must be a whole number, not the string 'fast'"),
        ("rate", "1.5", "the value given for parameter 'rate' must be a whole number, not the number 1.5"),
        ("fast", "yes", "the value given for parameter 'fast' must be true or false, not the string 'yes'"),
        ("wait", "5", "the value given for parameter 'wait': "),
        ("rate", None, None),
        ("rate", ["x"], "must be text, a number or a boolean, not list"),
    ],
)
def test_a_given_value_has_the_declared_type(mistakes, plan, name, value, message):
    if value is None:
        assert plan(**{name: value}) == plan()
        return
    (found,) = mistakes(**{name: value})
    assert found.startswith("p.yaml:1")
    assert message in found


def test_an_unknown_name_is_named_with_the_nearest(mistakes):
    assert mistakes(rat="1") == ["the pipeline has no parameter 'rat' (did you mean 'rate'?)"]
    assert mistakes("name: test\nnodes: []", rate="1")[0] == ("the pipeline has no parameter 'rate': it declares none")


def test_every_parameter_without_a_value_is_listed(mistakes):
    text = TEXT.replace("{default: 2}", "").replace("default: 1000, ", "")
    assert mistakes(text) == [
        "p.yaml:11:3: parameter 'width' has no default and needs a value: --set width=VALUE",
        "p.yaml:12:3: parameter 'rate' (rows each second) has no default and needs a value: --set rate=VALUE",
    ]


def test_a_required_parameter_may_be_given(plan):
    assert plan(TEXT.replace("default: 1000, ", ""), rate="1000") == plan()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rate: 5", "p.yaml:3:9: parameter 'rate' must be a mapping with the keys type, default, description"),
        ("rate: {defualt: 5}", "p.yaml:3:10: parameter 'rate' has no key 'defualt' (did you mean 'default'?)"),
        ("rate: {default: 5, type: integer}", "p.yaml:3:28: a parameter's type is one of string, int, float"),
        ("rate: {default: x, type: int}", "p.yaml:3:19: the default of parameter 'rate' must be a whole number"),
        ("rate: {default: 5, type: string}", "p.yaml:3:19: the default of parameter 'rate' must be a string"),
        ("rate: {default: [1]}", "p.yaml:3:19: the default of parameter 'rate' must be a string, not a list"),
        ("my-rate: {default: 5}", "p.yaml:3:3: the name of a parameter begins with"),
        ("rate: {default: 5, description: 7}", "p.yaml:3:35: the description of parameter 'rate' must be a string"),
        ('a: {default: 1}\n  rate: {default: "${a}"}', "p.yaml:4:19: the default of parameter 'rate' cannot depend"),
        ('rate: {default: "${NOT_SET}"}', "p.yaml:3:20: environment variable NOT_SET is not set"),
    ],
)
def test_a_wrong_declaration_is_one_mistake_with_a_place(mistakes, line, message):
    (found,) = mistakes(declared(line))
    assert found.startswith(message)


@pytest.mark.parametrize("section", ["5", "[a]"])
def test_parameters_are_a_mapping(mistakes, section):
    assert (
        "'parameters' must be a mapping" in mistakes(declared("").replace("parameters:", f"parameters: {section}"))[0]
    )


def test_a_mistake_of_a_value_is_shown_where_it_is_used(mistakes):
    (found,) = mistakes(width="0")
    assert found == "p.yaml:2:14: 'parallelism' must be between 1 and 4096"


def test_a_parameter_goes_before_the_environment_and_an_unknown_name_suggests_it(plan, mistakes):
    assert plan(environment={"rate": "5"}) == plan()
    (found,) = mistakes(TEXT.replace("up to ${rate}", "up to ${rte}"))
    assert "environment variable rte is not set" in found
    assert "did you mean '${rate}'?" in found


def test_a_parameter_may_decide_the_shape_which_the_environment_may_not(plan, mistakes):
    text = declared("end: {default: t.sink}").replace("operator: t.sink", 'operator: "${end}"')
    assert plan(text).nodes["b"].operator == "t.sink"
    secret = text.replace("default: t.sink", 'default: "${END}"')
    assert "'operator' cannot be read from the environment" in mistakes(secret, {"END": "t.sink"})[0]


def test_a_default_from_the_environment_stays_hidden():
    text = 'parameters: {key: {default: "${KEY}"}}\na: "x-${key}"\nb: "${key}"\nc: "${key:-none}"\n'
    environment = Environment({"KEY": "s3cr3t"})
    mistakes = Mistakes()
    loaded = load_pipeline(text, file="p.yaml", environment=environment, given={}, mistakes=mistakes)
    assert not mistakes
    shown = {entry.key: entry.value.written for entry in loaded.root.entries[1:]}
    assert plain(loaded.root)["a"] == "x-s3cr3t"
    assert shown == {"a": "x-${KEY}", "b": "${KEY}", "c": "${KEY}"}
    assert environment.redact("s3cr3t") == "${KEY}"


def test_a_value_is_not_searched_for_references():
    text = "parameters: {a: {default: x}, b: {default: y}}\nc: ${a}${b}\nd: $$${a}\n"
    loaded = load_pipeline(
        text, file="p.yaml", environment=Environment({}), given={"a": "${b}"}, mistakes=(mistakes := Mistakes())
    )
    assert not mistakes
    assert (plain(loaded.root)["c"], plain(loaded.root)["d"]) == ("${b}y", "$${b}")


@pytest.mark.parametrize(
    ("declaration", "given", "meaning"),
    [
        ("{type: int}", "5", 5),
        ("{type: float}", "5", 5),
        ("{type: bool}", "true", True),
        ("{type: string}", "5", "5"),
        ("{type: string}", "null", "null"),
        ("{}", "", ""),
        ("{default: 1.5}", "2.5", 2.5),
        ("{default: no}", "yes", "yes"),
        ("{type: size}", "1MiB", "1MiB"),
    ],
)
@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_a_reference_alone_has_the_type_of_its_parameter(declaration, given, meaning, quote):
    text = f"parameters:\n  p: {declaration}\nvalue: {quote}${{p}}{quote}\n"
    loaded = load_pipeline(
        text, file="p.yaml", environment=Environment({}), given={"p": given}, mistakes=(mistakes := Mistakes())
    )
    assert not mistakes
    found = plain(loaded.root)["value"]
    assert (found, type(found)) == (meaning, type(meaning))


def test_unused_parameters_are_known():
    text = "parameters: {a: {default: 1}, b: {default: 2}, c: {default: 3}}\nx: ${b}\ny: $${c}\n"
    loaded = load_pipeline(text, file="p.yaml", environment=Environment({}), given={}, mistakes=Mistakes())
    assert loaded.unused_parameters == ("a", "c")


def test_without_declarations_a_name_is_the_environment():
    value = load_document("${A}", file="p.yaml", environment=Environment({"A": "1"}), mistakes=Mistakes())
    assert (value.text, value.is_substituted, value.is_parameter) == ("1", True, False)


def test_where_the_file_is_not_yaml_no_declared_name_is_taken_for_a_variable(mistakes):
    text = TEXT.replace('flag: "${fast}"', "flag: ${fast}")
    (only,) = mistakes(text)
    assert only.startswith("p.yaml:8:")
    assert "must be in quotes" in only


def test_where_the_declarations_cannot_be_read_no_name_is_taken_for_a_variable(mistakes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = TEXT.partition("parameters:")[0] + "parameters: !include missing.yaml\n"
    (only,) = mistakes(text)
    assert "missing.yaml" in only


def test_without_declarations_a_missing_variable_is_told_beside_a_mistake_of_syntax(mistakes):
    text = "name: ${NAME}\nnodes:\n  - {id: a, operator: ${KIND}}\n"
    first, second = mistakes(text)
    assert "environment variable NAME is not set" in first
    assert "must be in quotes" in second
