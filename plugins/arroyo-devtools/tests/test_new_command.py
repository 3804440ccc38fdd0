"""`arroyo new`: what it makes works as it is, and keeps no name of the template."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from arroyo_devtools import scaffolding as templates
from arroyo_devtools.scaffolding import plugin_names, udf_names
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from arroyo_core.cli.main import main

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[3]


def run_tests(project, *arguments):
    """The tests of a new project in this interpreter, as if it were installed."""
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def all_text(folder):
    for path in folder.rglob("*"):
        assert "template" not in path.name
        if path.is_file():
            yield path, path.read_bytes()


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    into = tmp_path_factory.mktemp("plugins")
    assert main(["new", "plugin", "arroyo-acme-geo", "--into", str(into)]) == 0
    return into / "arroyo-acme-geo"


def test_a_new_plugin_passes_its_tests_and_its_conformance_tests(plugin):
    answer = run_tests(plugin)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    passed = int(answer.stdout.rpartition(" passed")[0].rpartition("\n")[2].rpartition(" ")[2])
    assert passed > 20


def test_a_new_plugin_keeps_no_name_of_the_template(plugin):
    for path, content in all_text(plugin):
        assert b"template" not in content.replace(b"tox -e", b""), path


@pytest.fixture(scope="module", params=["source", "sink", "operator", "database"])
def part(request, tmp_path_factory):
    into = tmp_path_factory.mktemp("parts")
    assert main(["new", request.param, "arroyo-acme-geo", "--into", str(into)]) == 0
    return into / "arroyo-acme-geo"


def test_a_new_part_of_a_plugin_passes_its_own_tests(part):
    # Its conformance tests, which take longer, are run where it is installed: tests/integration.
    answer = run_tests(part, "--ignore=tests/test_conformance.py")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert (part / "tests" / "test_conformance.py").is_file()


def test_a_new_part_of_a_plugin_keeps_no_name_of_the_template(part):
    for path, content in all_text(part):
        assert b"template" not in content, path
    assert 'registry.add("acme_geo.' in (part / "src" / "arroyo_acme_geo" / "plugin.py").read_text()


@pytest.mark.parametrize("kind", ["plugin", "source", "sink", "operator", "database", "udf"])
def test_what_is_printed_installs_all_that_the_tests_import(kind, tmp_path, capsys):
    assert main(["new", kind, "acme-things", "--into", str(tmp_path)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "pip install" in line]
    installed = {"arroyo_core", "acme_things", *line.replace("-", "_").split()}
    # They come with arroyo-core.
    installed |= {"pyarrow", *sys.stdlib_module_names}
    tests = (tmp_path / "acme-things" / "tests").glob("*.py")
    imported = {
        name.split(".")[0]
        for path in tests
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "")]
        )
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported - installed == set()


def test_the_generated_code_of_a_new_plugin_is_what_the_compiler_makes(plugin, tmp_path):
    check_generated_code(plugin, tmp_path)


def test_the_generated_code_of_a_new_part_is_what_the_compiler_makes(part, tmp_path):
    check_generated_code(part, tmp_path)


def check_generated_code(plugin, tmp_path):
    pytest.importorskip("grpc_tools")
    package = tmp_path / "arroyo_acme_geo"
    package.mkdir()
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{ROOT}",
        f"-I{plugin / 'src'}",
        f"--python_out={tmp_path}",
    ]
    command += [
        f"--pyi_out={tmp_path}",
        "--include_source_info",
        f"--descriptor_set_out={package / 'descriptors.binpb'}",
    ]
    subprocess.run([*command, "arroyo_acme_geo/config.proto"], check=True)
    made = plugin / "src" / "arroyo_acme_geo"
    assert (made / "config_pb2.pyi").read_text() == (package / "config_pb2.pyi").read_text()
    assert descriptors(made) == descriptors(package)
    assert ranges(made / "config_pb2.py") == ranges(package / "config_pb2.py")


def descriptors(folder):
    """With their comments, and without the columns of the file, which move where a name is longer."""
    found = FileDescriptorSet.FromString((folder / "descriptors.binpb").read_bytes())
    for file in found.file:
        for location in file.source_code_info.location:
            del location.span[:]
    return found


def ranges(path):
    """The serialised descriptor of a generated module, and all its lines but that one."""
    lines = path.read_text().splitlines()
    (serialized,) = [line for line in lines if "AddSerializedFile" in line]
    data = eval(serialized.partition("AddSerializedFile(")[2].removesuffix(")"))
    return FileDescriptorProto.FromString(data), [line for line in lines if line != serialized]


def test_new_functions_pass_their_tests(tmp_path):
    assert main(["new", "udf", "acme-functions", "--prefix", "acme", "--into", str(tmp_path)]) == 0
    project = tmp_path / "acme-functions"
    answer = run_tests(project)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for path, content in all_text(project):
        assert b"template" not in content, path
    assert "def acme_initials(text: str)" in (project / "src" / "acme_functions" / "functions.py").read_text()


def test_new_functions_are_a_bundle(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "udf", "acme-functions"]) == 0
    assert main(["udf", "build", "acme-functions"]) == 0, capsys.readouterr().err
    (wheel,) = tmp_path.glob("*.whl")
    assert main(["udf", "test", str(wheel)]) == 0, capsys.readouterr().err
    # The package passes its functions on from a module: their examples run once.
    assert "3 functions, 1 example, all as they say" in capsys.readouterr().out


@pytest.mark.skipif(importlib.util.find_spec("arroyo_nexmark") is None, reason="needs arroyo-nexmark")
def test_a_new_pipeline_is_valid_and_runs(tmp_path, capfd, monkeypatch):
    from arroyo_testing import run_in_process

    monkeypatch.chdir(tmp_path)
    assert main(["new", "pipeline", "hot_items"]) == 0
    assert main(["validate", "hot_items.yaml"]) == 0
    result = run_in_process("hot_items.yaml")
    assert result.job_id == "hot_items"
    printed = capfd.readouterr().out
    assert "highest" in printed
    assert len(printed.splitlines()) < 30


@pytest.mark.skipif(importlib.util.find_spec("arroyo_nexmark") is None, reason="needs arroyo-nexmark")
def test_a_new_pipeline_passes_its_tests_and_lint(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "pipeline", "hot_items"]) == 0
    assert all(b"template" not in content for _, content in all_text(tmp_path))
    assert main(["test", "hot_items.yaml"]) == 0
    assert "2 tests, all passed" in capsys.readouterr().out
    assert main(["lint", "hot_items.yaml"]) == 0, capsys.readouterr().out
    assert main(["fmt", "--check", "hot_items.yaml", "hot_items_test.yaml"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", ["Acme", "acme_geo", "-acme", "../acme", "", "json", "arroyo-core"])
def test_a_name_that_cannot_be_used_is_refused(name, tmp_path, capsys):
    assert (
        main(
            ["new", "plugin", name, "--into", str(tmp_path)]
            if not name.startswith("-")
            else ["new", "plugin", "--into", str(tmp_path), "--", name]
        )
        == 2
    )
    assert "is not a name for a plugin" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "name", "made"),
    [("plugin", "acme", "acme"), ("pipeline", "acme", "acme.yaml"), ("pipeline", "acme", "acme_test.yaml")],
)
def test_what_is_there_already_is_left_alone(kind, name, made, tmp_path, capsys):
    (tmp_path / made).write_text("mine")
    assert main(["new", kind, name, "--into", str(tmp_path)]) == 2
    assert "is already there: choose another name" in capsys.readouterr().err
    assert (tmp_path / made).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [made]


def test_a_folder_that_is_missing_is_named(tmp_path, capsys):
    assert main(["new", "udf", "acme", "--into", str(tmp_path / "nowhere")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(templates, "_rewrite", lambda path, apply: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        templates.render_plugin(plugin_names("acme"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_package_and_prefix_follow_from_the_name():
    names = plugin_names("arroyo-acme-geo")
    assert (names.package, names.prefix) == ("arroyo_acme_geo", "acme_geo")
    assert udf_names("arroyo-udf-acme").prefix == "acme"
    assert plugin_names("acme", "geo").prefix == "geo"


def test_the_wheel_carries_the_templates():
    import tomllib

    folder = ROOT / "plugins" / "arroyo-devtools"
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    forced = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert forced == {
        "../_template": "arroyo_devtools/templates/plugin",
        "../_templates/database": "arroyo_devtools/templates/database",
        "../_templates/operator": "arroyo_devtools/templates/operator",
        "../_templates/sink": "arroyo_devtools/templates/sink",
        "../_templates/source": "arroyo_devtools/templates/source",
        "../../udfs/_template": "arroyo_devtools/templates/udf",
    }
    assert all((folder / path / "pyproject.toml").is_file() for path in forced)
