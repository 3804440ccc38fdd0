import os

import pytest

from arroyo_core.api.limits import FILE_BYTES, INCLUDE_DEPTH, INCLUDES
from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import plan_pipeline, plan_text

WHOLE = """\
name: test
nodes:
  - {id: a, operator: t.source}
  - {id: b, operator: t.map, inputs: [a]}
  - {id: c, operator: t.map, inputs: [b], config: {x: 1, y: two}}
  - {id: d, operator: t.sink, inputs: [c]}
"""
PARTS = """\
name: test
nodes:
  - !include parts/front.yaml
  - {id: c, operator: t.map, inputs: [b], config: !include settings.yaml}
  - !include parts/sink.yaml
"""


@pytest.fixture
def write(tmp_path):
    def call(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "p.yaml"

    return call


@pytest.fixture
def parts(write):
    def call(**changed):
        files = {
            "p.yaml": PARTS,
            "settings.yaml": "x: 1\ny: two\n",
            "parts/front.yaml": "- {id: a, operator: t.source}\n- !include middle.yaml\n",
            "parts/middle.yaml": "{id: b, operator: t.map, inputs: [a]}\n",
            "parts/sink.yaml": "id: d\noperator: t.sink\ninputs: [c]\n",
        }
        return write(files | {name.replace("__", "/") + ".yaml": text for name, text in changed.items()})

    return call


@pytest.fixture
def plan(plugins):
    def call(path, **given):
        return plan_pipeline(path, plugins=plugins, environment={"HOME": "/"}, parameters=given)

    return call


@pytest.fixture
def mistakes(plan, tmp_path):
    """The mistakes of a file, with places relative to its folder."""

    def call(path, **given):
        with pytest.raises(InvalidPipelineError) as caught:
            plan(path, **given)
        return [str(error).replace(f"{tmp_path}/", "") for error in caught.value.errors]

    return call


def test_included_files_give_the_plan_of_the_whole(parts, plan, plugins):
    assert plan(parts()) == plan_text(WHOLE, plugins=plugins, environment={})


def test_a_change_in_an_included_file_changes_the_plan(parts, plan):
    before = plan(parts())
    assert plan(parts(settings="{x: 2, y: two}")) != before


def test_a_whole_section_and_a_base_can_be_included(write, plan, plugins):
    files = {
        "p.yaml": "<<: !include base.yaml\nname: test\n",
        "base.yaml": "name: base\nparameters: !include parameters.yaml\nnodes: !include nodes.yaml\n",
        "parameters.yaml": "number: {default: 1}\n",
        "nodes.yaml": WHOLE.partition("nodes:\n")[2].replace("x: 1", 'x: "${number}"'),
    }
    assert plan(write(files)) == plan_text(WHOLE, plugins=plugins, environment={})
    other = plan_text(WHOLE.replace("x: 1", "x: 7"), plugins=plugins, environment={})
    assert plan(write(files), number="7") == other


def test_a_parameter_chooses_the_file(write, plan, mistakes):
    text = "parameters: {stage: {default: dev}}\nname: !include stages/${stage}.yaml\n" + WHOLE.partition("\n")[2]
    path = write({"p.yaml": text, "stages/dev.yaml": "dev_job", "stages/prod.yaml": "prod_job"})
    assert plan(path).job_id == "dev_job"
    assert plan(path, stage="prod").job_id == "prod_job"
    (found,) = mistakes(path, stage="pord")
    assert found.startswith("p.yaml:2:7: cannot read stages/pord.yaml: No such file or directory")
    assert "did you mean 'stages/prod.yaml'?" in found


def test_the_environment_does_not_choose_the_file(write, mistakes):
    (found,) = mistakes(write({"p.yaml": "name: !include ${HOME}/x\n" + WHOLE.partition("\n")[2]}))
    assert found == "p.yaml:1:7: the path of an !include cannot be read from the environment; a parameter can be used"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "parts__sink",
            "id: d\noperator: t.snik\ninputs: [c]\n",
            "parts/sink.yaml:2:11: there is no operator 't.snik'",
        ),
        ("parts__sink", "id: d\noperator: 't.sink\n", "parts/sink.yaml:2:11: YAML syntax"),
        (
            "parts__sink",
            "id: d\nid: e\noperator: t.sink\ninputs: [c]\n",
            "parts/sink.yaml:2:1: key 'id' is written twice",
        ),
        ("parts__middle", "- {id: a, operator: t.map, inputs: [a]}\n", "ids must be unique"),
        ("settings", "x: ${NOT_SET}\n", "settings.yaml:1:4: environment variable NOT_SET is not set"),
        ("settings", "", "settings.yaml:1:1: the file is empty"),
        ("settings", "a: 1\n---\nb: 2\n", "settings.yaml:2:1: a second document begins here: a file holds one value"),
        ("settings", "*there\n", "settings.yaml:1:1: alias *there has no anchor before it"),
        ("settings", "!include settings.yaml\n", "settings.yaml:1:1: the files include one another: "),
        ("settings", "!include\n", "settings.yaml:1:1: !include needs the path of a file"),
        ("settings", "!include [a]\n", "settings.yaml:1:1: !include takes the path of a file"),
        ("settings", "!include parts\n", "settings.yaml:1:1: cannot read parts: Is a directory"),
    ],
)
def test_a_mistake_is_shown_in_the_included_file(parts, mistakes, file, text, message):
    found = mistakes(parts(**{file: text}))
    assert any(message in one for one in found), found
    assert file == "parts__middle" or len(found) == 1, found


def test_a_node_that_is_there_twice_names_the_other_file(parts, mistakes):
    found = mistakes(parts(parts__middle="{id: a, operator: t.map, inputs: [a]}"))
    assert "parts/middle.yaml:1:6: a node 'a' is already in parts/front.yaml:1:8: ids must be unique" in found


def test_a_circle_of_files_is_shown(parts, mistakes):
    found = mistakes(parts(settings="!include parts/ring.yaml", parts__ring="!include ../settings.yaml"))
    assert found == [
        "parts/ring.yaml:1:1: the files include one another: "
        "p.yaml -> settings.yaml -> parts/ring.yaml -> settings.yaml"
    ]


def test_files_that_double_at_each_step_come_to_an_end(write, mistakes):
    files = {f"f{i}.yaml": f"[!include f{i + 1}.yaml, !include f{i + 1}.yaml]" for i in range(12)}
    path = write(files | {"f12.yaml": "x", "p.yaml": "name: test\nnodes: !include f0.yaml\n"})
    assert any(f"may include {INCLUDES.value} files at most" in one for one in mistakes(path))


def test_a_long_chain_of_files_comes_to_an_end(write, mistakes):
    files = {f"f{i}.yaml": f"!include f{i + 1}.yaml" for i in range(2 * INCLUDE_DEPTH.value)}
    path = write(files | {"p.yaml": "name: test\nnodes: !include f0.yaml\n"})
    (found,) = mistakes(path)
    last = f"f{INCLUDE_DEPTH.value - 2}.yaml:1:1"
    assert found.startswith(f"{last}: files include one another more than {INCLUDE_DEPTH.value} deep")


def test_depth_counts_through_files(write, mistakes):
    files = {f"f{i}.yaml": "[" * 9 + f"!include f{i + 1}.yaml" + "]" * 9 for i in range(9)}
    path = write(files | {"f9.yaml": "x", "p.yaml": "name: test\nnodes: !include f0.yaml\n"})
    assert any("nested more than 64 deep" in one for one in mistakes(path))


def test_a_list_is_spliced_only_where_it_is_included(write, plan):
    text = WHOLE.replace("{x: 1, y: two}", "{x: [[1, 2], !include more.yaml]}")
    path = write({"p.yaml": text, "more.yaml": "[3, [4]]"})
    assert plan(path) == plan(write({"p.yaml": WHOLE.replace("{x: 1, y: two}", "{x: [[1, 2], 3, [4]]}")}))


def test_a_file_outside_of_the_project_is_neither_included_nor_shown(write, mistakes, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.yaml"
    secret.write_text("hunter2: [")
    (found,) = mistakes(write({"p.yaml": f"name: test\nnodes: !include {secret}\n"}))
    assert "p.yaml:2:8: cannot include" in found
    assert "--root DIR" in found
    assert "hunter2" not in found


def test_a_link_to_a_file_outside_is_outside(write, mistakes, tmp_path, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.yaml"
    secret.write_text("hunter2: [")
    (tmp_path / "link.yaml").symlink_to(secret)
    (found,) = mistakes(write({"p.yaml": "name: test\nnodes: !include link.yaml\n"}))
    assert "cannot include" in found


def test_a_near_name_of_a_folder_outside_is_not_told(write, mistakes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "payroll.yaml").write_text("x")
    (found,) = mistakes(write({"p.yaml": f"name: test\nnodes: !include {folder}/payrol.yaml\n"}))
    assert "payroll" not in found


@pytest.mark.parametrize("way", ["project", "working directory", "root"])
def test_files_of_the_project_and_of_given_roots_are_included(way, write, plan, plugins, tmp_path, monkeypatch):
    path = (
        write({"shared/nodes.yaml": WHOLE.partition("nodes:")[2], "pipelines/p.yaml": ""}).parent / "pipelines/p.yaml"
    )
    path.write_text("name: test\nnodes: !include ../shared/nodes.yaml\n")
    if way == "project":
        (tmp_path / "pyproject.toml").touch()
    elif way == "working directory":
        monkeypatch.chdir(tmp_path)
    else:
        monkeypatch.setenv("ARROYO_ROOTS", str(tmp_path / "shared"))
    assert plan(path) == plan_text(WHOLE, plugins=plugins, environment={})


def test_a_device_or_a_pipe_is_not_included(write, mistakes, tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (found,) = mistakes(write({"p.yaml": "name: test\nnodes: !include pipe.yaml\n"}))
    assert "it is not a regular file" in found


def test_a_large_file_is_not_included(write, mistakes, monkeypatch):
    monkeypatch.setenv(FILE_BYTES.variable, "100")
    (found,) = mistakes(write({"p.yaml": "name: test\nnodes: !include b.yaml\n", "b.yaml": "#" * 101}))
    assert "it is too large: at most" in found
    assert FILE_BYTES.variable in found


def test_values_are_counted_through_files(write, mistakes, monkeypatch):
    monkeypatch.setenv("ARROYO_MAX_VALUES", "50")
    path = write({"p.yaml": "name: test\nnodes: [!include b.yaml, !include b.yaml]\n", "b.yaml": f"[{'x, ' * 30}]"})
    assert any("too many values: at most 50" in one for one in mistakes(path))


def test_the_name_of_no_file_is_a_mistake(write, mistakes):
    (found,) = mistakes(write({"p.yaml": 'name: test\nnodes: !include "a\\0b"\n'}))
    assert "include" in found


def test_a_pipeline_that_is_a_link_elsewhere_is_refused_in_untrusted_mode(write, plan, tmp_path, tmp_path_factory):
    real = tmp_path_factory.mktemp("elsewhere") / "p.yaml"
    real.write_text(WHOLE)
    (tmp_path / "p.yaml").symlink_to(real)
    plan(tmp_path / "p.yaml")
    policy = PlanningPolicy(is_untrusted=True, roots=(tmp_path.resolve(),))
    with in_force(policy), pytest.raises(InvalidPipelineError, match="untrusted mode refuses to read"):
        plan(tmp_path / "p.yaml")


def test_nodes_and_columns_are_limited(write, mistakes, monkeypatch):
    path = write({"p.yaml": WHOLE})
    monkeypatch.setenv("ARROYO_MAX_NODES", "3")
    (found,) = mistakes(path)
    assert "p.yaml:6:10: the pipeline has 4 nodes: at most 3 nodes" in found
    monkeypatch.delenv("ARROYO_MAX_NODES")
    monkeypatch.setenv("ARROYO_MAX_COLUMNS", "1")
    (found,) = mistakes(path)
    assert "are too many: at most 1 columns in the rows of a node" in found
