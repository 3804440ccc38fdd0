"""The repository is built as its documents say: every distribution alike, and none forgotten."""

import ast
import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def load_tool(name):
    """A script of tools/, imported by its path: it is not part of any distribution."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


DISTRIBUTIONS = load_tool("distributions").distributions()
PLUGINS = [found for found in DISTRIBUTIONS if found.name != "core"]
ALLOWED_FROM_CORE = ("api", "plugin", "errors", "local_folders", "state", "proto", "udf")
#: Distributions of commands: they plan and run pipelines themselves.
TOOLS = {
    "arroyo-console",
    "arroyo-devtools",
    "arroyo-dlq",
    "arroyo-jobs",
    "arroyo-openlineage",
    "arroyo-pack",
    "arroyo-sql",
    "arroyo-testing",
}

#: It gives DataFrames to pipelines, and has a data source of Spark's.
BRIDGE = "arroyo-spark"


def plugin_id(distribution):
    return distribution.name


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_the_core_comes_first_and_the_template_is_no_distribution():
    names = [found.name for found in DISTRIBUTIONS]
    assert names[0] == "core"
    assert "_template" not in names


@pytest.mark.parametrize("plugin", PLUGINS, ids=plugin_id)
class TestEveryPlugin:
    def test_folder_and_distribution_share_a_name(self, plugin):
        assert plugin.project == plugin.name

    def test_it_is_typed_documented_and_tested(self, plugin):
        assert len(plugin.packages) == 1
        assert (plugin.packages[0] / "py.typed").exists()
        assert (plugin.folder / "README.md").stat().st_size > 0
        assert list((plugin.folder / "tests").rglob("test_*.py"))

    def test_it_has_the_licence_and_the_python_of_the_core(self, plugin):
        core = DISTRIBUTIONS[0].metadata["project"]
        for key in ("license", "requires-python", "version"):
            assert plugin.metadata["project"][key] == core[key]

    def test_its_entry_points_name_modules_of_its_own(self, plugin):
        points = plugin.metadata["project"]["entry-points"]["arroyo_core"]
        for module in points.values():
            assert (plugin.sources / (module.replace(".", "/") + ".py")).exists()

    def test_it_imports_the_public_core_and_no_other_plugin(self, plugin):
        others = {package.name for other in PLUGINS if other is not plugin for package in other.packages}
        # What bytes mean, and how rows are committed, is shared by connectors; a distribution that uses it requires it.
        shared = {"arroyo_connectors", "arroyo_formats"}
        if plugin.name == "arroyo-sql":
            # Queries become its operators, and call the functions that its expressions have.
            shared.add("arroyo_std")
        if plugin.name == "arroyo-console":
            # It shows what their commands do.
            shared |= {"arroyo_devtools", "arroyo_dlq"}
        for name in shared:
            if any(each.startswith(name.replace("_", "-")) for each in plugin.metadata["project"]["dependencies"]):
                others.discard(name)
        for path in plugin.sources.rglob("*.py"):
            for module in imported_modules(path):
                top, _, rest = module.partition(".")
                assert top not in others, f"{path} imports {module}"
                # Commands are part of the command line, whoever brings them.
                has_commands = rest.startswith("cli.commands") or path.parent.name == "commands"
                if top == "arroyo_core" and rest and plugin.name not in TOOLS and not has_commands:
                    assert rest.startswith(ALLOWED_FROM_CORE), f"{path} imports {module}"

    def test_only_the_bridge_to_spark_imports_pyspark(self, plugin):
        imports = {
            module.partition(".")[0] for path in plugin.sources.rglob("*.py") for module in imported_modules(path)
        }
        assert ("pyspark" in imports) == (plugin.name == BRIDGE)


def load_lock():
    # It imports the other one by its name, as scripts do.
    load_tool("sparks")
    return load_tool("lock")


def load_pins():
    load_lock()
    return load_tool("pins")


def test_constraints_are_whole_and_name_no_index():
    lock, pins = load_lock(), load_pins()
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert "://" not in text
    found = pins.read_pins(text)
    assert "pyspark" in found
    wanted = lock.foreign(lock.wanted_lines(), {distribution.project for distribution in DISTRIBUTIONS})
    assert list(pins.problems(found, wanted, {})) == []


@pytest.mark.parametrize(
    ("requirement", "installed", "problem"),
    [
        ("other>=1", {}, "other>=1 has no pin"),
        ("six>=2", {}, "six>=2 does not allow its pin, 1.16.0"),
        ("six", {"six": "1.17.0"}, "six 1.17.0 is installed, and its pin is 1.16.0"),
        ("six", {"other": "1"}, "other 1 is installed and has no pin"),
    ],
)
def test_constraints_that_are_not_whole_are_told(requirement, installed, problem):
    pins = load_pins()
    found = pins.read_pins(f"# Pins\nsix==1.16.0 ; os_name == 'nt' \\\n    --hash=sha256:{'0' * 64}\n")
    assert list(pins.problems(found, [requirement], installed)) == [problem]


def test_a_pin_without_a_hash_is_told():
    pins = load_pins()
    found = pins.read_pins(f"six==1.16.0\nsix-too==2 \\\n    --hash=sha256:{'0' * 64}\n")
    assert list(pins.problems(found, [], {})) == ["six==1.16.0 has no hash"]


def test_the_licence_of_every_requirement_is_listed():
    lock = load_lock()
    own = {found.project for found in DISTRIBUTIONS}
    wanted = {lock.own_name(line) for found in DISTRIBUTIONS for line in lock.foreign(found.requirements, own)}
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    listed = {lock.own_name(name) for name in re.findall(r"^\| ([^ |]+) \| [0-9]", page, re.MULTILINE)}
    assert wanted - listed == set(), "run 'make licences'"


def test_protobuf_is_required_at_least_as_new_as_the_generated_code():
    folders = [ROOT / "plugins" / "_template", *(ROOT / "plugins" / "_templates").iterdir()]
    templates = [load_tool("distributions").Distribution(folder.name, folder) for folder in folders]
    for distribution in (*DISTRIBUTIONS, *templates):
        made_with = {
            tuple(map(int, version.split(".")))
            for package in distribution.packages
            for path in package.rglob("*_pb2.py")
            for version in re.findall(r"Protobuf Python Version: ([\d.]+)", path.read_text(encoding="utf-8"))
        }
        if not made_with:
            continue
        requirement = next(line for line in distribution.requirements if line.startswith("protobuf"))
        oldest = tuple(map(int, re.search(r">=([\d.]+)", requirement).group(1).split(".")))
        assert oldest >= max(made_with), f"{distribution.name}: {requirement}, generated with {max(made_with)}"


def test_the_core_declares_what_it_imports():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, own = settings["project"], settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    own_name = load_lock().own_name
    declared = {own_name(line) for line in [*project["dependencies"], *extras]}
    # pyspark has a pin for py4j, another one in each release.
    distribution_of = {"google": "protobuf", "py4j": "pyspark", "yaml": "pyyaml"}
    for path in (ROOT / "arroyo_core").rglob("*.py"):
        for module in imported_modules(path):
            top = module.partition(".")[0]
            if top in own or top in sys.stdlib_module_names:
                continue
            assert own_name(distribution_of.get(top, top)) in declared, f"{path} imports {module}"
