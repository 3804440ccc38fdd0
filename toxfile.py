"""Teaches tox the folders of this repository: every distribution has an environment per Python.

`tox.ini` holds one generic section. The names `{wheels}`, `{suites}` and `{sources}` that it uses are
worked out here from the environment's name: `py311-core`, `py312-arroyo-std`, ...

The matrix has an environment of its own for each distribution on one Python, where something can be missing that
another distribution brings along; on each other Python one environment, `py312` and `py313`, runs what depends on the
interpreter. Each older Spark has one too, `spark35` and its like: `tools/sparks.py` lists them.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tox.config.loader.memory import MemoryLoader
from tox.config.sets import ConfigSet, EnvConfigSet
from tox.plugin import impl
from tox.session.state import State

# tox loads this file by its path; the definition that it shares with the scripts is in tools/.
sys.path.insert(0, str(Path(__file__).parent / "tools"))

from distributions import CORE, ROOT, Distribution, distributions
from interpreters import MATRIX
from sparks import ROWS, row_named

#: The version that runs the tests on Spark too; the others run the unit tests only.
FULL = f"py{sys.version_info.major}{sys.version_info.minor}"

#: The core's tests on Spark have an environment of their own: a process of their own finds the plugins that they bring
#: along.
INTEGRATION = f"{FULL}-integration"

#: Kills and pauses, and what is long or large: these wait more than they work.
CHAOS = f"{FULL}-chaos"

#: Whole pipelines of all plugins, in process: what they give, and what they give whatever happens to them.
PIPELINES = f"{FULL}-pipelines"
CRASHES = f"{FULL}-crashes"

#: Some of their tests judge who answers in time: these go first where cores are few.
ON_SPARK = (INTEGRATION, CHAOS)
COURTESY = "nice -n 5"

#: What the tests of every plugin need.
TEST_KIT = "arroyo-testing"

#: What the pipelines of `tests/sparks` are made of.
ON_EACH_SPARK = (CORE, TEST_KIT, "arroyo-filesystem", "arroyo-nexmark", "arroyo-spark", "arroyo-std")

#: What runs on one Python only: what shows the same on each, servers, and properties, which take hundreds of examples
#: to find what depends on values, not on the Python.
ON_ONE_PYTHON = ("hypothesis", "once", "server")

#: What takes longest begins first, so that in the end no core waits for it alone.
LONGEST = (
    *ON_SPARK,
    f"{FULL}-arroyo-kafka",
    f"{FULL}-arroyo-mysql",
    f"{FULL}-arroyo-postgres",
    PIPELINES,
    CRASHES,
    f"{FULL}-arroyo-std",
    f"{FULL}-{CORE}",
)


def other_tags() -> list[str]:
    """The Pythons of the matrix but the one of this environment."""
    return [tag for version in MATRIX if (tag := f"py{version.replace('.', '')}") != FULL]


def environment_names() -> list[str]:
    """The matrix."""
    names = [f"{FULL}-{distribution.name}" for distribution in distributions()]
    return list(dict.fromkeys([*LONGEST, *(row.name for row in ROWS), *other_tags(), "lint", *names]))


def names_on_request() -> list[str]:
    """What is not in the matrix, and can be asked for by name: one distribution on another Python."""
    return [f"{tag}-{distribution.name}" for tag in other_tags() for distribution in distributions()]


def distribution_of(environment: str) -> Distribution | None:
    name = environment.partition("-")[2]
    return next((found for found in distributions() if found.name == name), None)


def installed_in(environment: str) -> Sequence[Distribution]:
    """A plugin is tested with the core, the test kit and what it asks for; the core's own tests use all plugins."""
    known, subject = distributions(), distribution_of(environment)
    if row_named(environment):
        wanted = set(ON_EACH_SPARK)
    elif subject is None or subject.name == CORE:
        return known
    else:
        wanted = {CORE, TEST_KIT, subject.name}
    while more := {name for found in known if found.name in wanted for name in found.companions} - wanted:
        wanted |= more
    return [found for found in known if found.name in wanted]


def wheels(environment: str) -> list[str]:
    """What is installed, with the extras that tests need: nothing runs without Spark."""
    extras = {CORE: "[spark,connect]" if row_named(environment) else "[spark]"}
    return [f"dist/{found.wheel_name}{extras.get(found.name, '')}" for found in installed_in(environment)]


def suites(environment: str) -> dict[str, list[str]]:
    """What pytest is asked to run, by the name of its report; nothing for an environment without tests."""
    if row_named(environment):
        return {environment: ["tests/sparks"]}
    if environment == PIPELINES:
        return {environment: ["benchmarks", "tests/lives", "tests/edits", "tests/golden", "tests/nexmark"]}
    if environment == CRASHES:
        return {environment: ["tests/exactly_once", "tests/adversary", "tests/fuzz"]}
    if environment == INTEGRATION:
        # A process of its own: one that has a Spark already gets no session as a user makes it.
        return {environment: ["tests/integration"], f"{environment}.sparks": ["tests/sparks"]}
    if environment == CHAOS:
        return {environment: ["tests/chaos", "tests/kafka", "tests/orders", "tests/soak", "tests/many", "tests/scale"]}
    if environment in other_tags():
        return {environment: [*interpreter_tests(), *without_marks()]}
    subject = distribution_of(environment)
    if subject is None:
        return {}
    return {environment: unit_tests(subject, is_full=environment.startswith(FULL))}


def unit_tests(distribution: Distribution, *, is_full: bool) -> list[str]:
    tests = Path("tests/unit") if distribution.name == CORE else distribution.folder.relative_to(ROOT) / "tests"
    if is_full:
        return [str(tests)]
    needs_spark = tests / "integration"
    without_spark = [f"--ignore={needs_spark}"] if (ROOT / needs_spark).is_dir() else []
    return [str(tests), *without_spark, *without_marks()]


def interpreter_tests() -> list[str]:
    """What depends on the interpreter: types, plugins, code that is read and pickled; and every operator once."""
    core = [Path("tests/unit", name) for name in ("api", "pipeline", "plugin", "udf", "udf_bundles")]
    plugins = [found.folder.relative_to(ROOT) for found in distributions() if found.name != CORE]
    functions = [folder / "tests" for folder in plugins if folder.parts[0] == "udfs"]
    operators = [
        path.relative_to(ROOT)
        for folder in plugins
        for path in sorted((ROOT / folder / "tests").glob("test_*conformance*.py"))
    ]
    return [str(path) for path in (*core, *functions, *operators)]


def without_marks() -> list[str]:
    # Marks that a distribution does not use select nothing.
    chosen = " and ".join(f"not {mark}" for mark in ON_ONE_PYTHON)
    return ["-m", f"'{chosen}'"]


def commands(environment: str, options: Sequence[str]) -> list[str]:
    """One run of pytest for each suite, with further options."""
    courtesy = "" if environment in ON_SPARK else COURTESY
    return [
        f"{courtesy} pytest --junit-xml=build/reports/{name}.xml -o junit_suite_name={name}"
        f" -ra --timeout=300 --durations=5 {shlex.join(options)} {' '.join(arguments)}"
        for name, arguments in suites(environment).items()
    ]


def sources() -> list[str]:
    """What mypy checks: the core, the scripts, and the packages of every plugin, the templates too."""
    folders = [
        ROOT / "plugins" / "_template",
        *(ROOT / "plugins" / "_templates").iterdir(),
        ROOT / "udfs" / "_template",
    ]
    templates = [folder / "src" for folder in sorted(folders)]
    plugins = [*(found.sources for found in distributions()[1:]), *templates]
    return [
        "arroyo_core",
        "tools",
        "toxfile.py",
        *(str(path.relative_to(ROOT)) for path in plugins),
    ]


@impl
def tox_extend_envs() -> Iterable[str]:
    return [*environment_names(), *names_on_request()]


@impl
def tox_add_core_config(core_conf: ConfigSet, state: State) -> None:
    core_conf.loaders.insert(0, MemoryLoader(env_list="\n".join(environment_names())))


@impl
def tox_add_env_config(env_conf: EnvConfigSet, state: State) -> None:
    name = env_conf.name or ""
    row = row_named(name)
    values = {
        "wheels": " ".join(wheels(name)),
        "suites": "\n".join(commands(name, state.conf.pos_args(None) or ())),
        "sources": " ".join(sources()),
        "spark_python": f"python{row.python}" if row else "",
        # The environment of make has pip, and what builds pyspark.
        "build_python": sys.executable,
    }
    for key, value in values.items():
        env_conf.add_config(keys=[key], of_type=str, default=value, desc=f"{key} of this distribution")
