"""Teaches tox the folders of this repository: every distribution has an environment per Python.

`tox.ini` holds one generic section. The names `{wheels}`, `{tests}` and `{sources}` that it uses are
worked out here from the environment's name: `py311-core`, `py312-arroyo-std`, ...
"""

from __future__ import annotations

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

#: The version that runs the tests on Spark too; the others run the unit tests only.
FULL = f"py{sys.version_info.major}{sys.version_info.minor}"

#: The core's tests on Spark have an environment of their own: they take all cores, and a process of their own
#: finds the plugins that they bring along.
INTEGRATION = f"{FULL}-integration"

#: Kills and pauses, and what is long or large: these wait more than they work, so that they run beside the others.
CHAOS = f"{FULL}-chaos"

#: Whole pipelines of all plugins, in process: one core is enough, so that it runs beside others.
PIPELINES = f"{FULL}-pipelines"

#: What the tests of every plugin need.
TEST_KIT = "arroyo-testing"

#: Distributions whose property tests take minutes: these run on one Python, all others on each.
SLOW_PROPERTIES = {CORE, "arroyo-std"}


def python_tags() -> list[str]:
    """The Pythons of the matrix, the one of this environment first: it is the likeliest to fail."""
    return list(dict.fromkeys([FULL, *(f"py{version.replace('.', '')}" for version in MATRIX)]))


def environment_names() -> list[str]:
    names = [f"{tag}-{distribution.name}" for tag in python_tags() for distribution in distributions()]
    return ["lint", PIPELINES, *names, INTEGRATION, CHAOS]


def distribution_of(environment: str) -> Distribution | None:
    name = environment.partition("-")[2]
    return next((found for found in distributions() if found.name == name), None)


def installed_in(environment: str) -> Sequence[Distribution]:
    """A plugin is tested with the core, the test kit and what it asks for; the core's own tests use all plugins."""
    known, subject = distributions(), distribution_of(environment)
    if subject is None or subject.name == CORE:
        return known
    wanted = {CORE, TEST_KIT, subject.name}
    while more := {name for found in known if found.name in wanted for name in found.companions} - wanted:
        wanted |= more
    return [found for found in known if found.name in wanted]


def test_arguments(environment: str) -> list[str]:
    """What pytest is asked to run; empty for an environment without tests."""
    if environment == PIPELINES:
        folders = ("lives", "edits", "golden", "nexmark", "exactly_once", "adversary")
        return ["benchmarks", *(f"tests/{folder}" for folder in folders)]
    if environment == INTEGRATION:
        return ["tests/integration"]
    if environment == CHAOS:
        return ["tests/chaos", "tests/kafka", "tests/soak", "tests/many", "tests/scale"]
    subject = distribution_of(environment)
    if subject is None:
        return []
    tests = Path("tests/unit") if subject.name == CORE else subject.folder.relative_to(ROOT) / "tests"
    if environment.startswith(FULL):
        return [str(tests)]
    needs_spark = tests / "integration"
    without_spark = [f"--ignore={needs_spark}"] if (ROOT / needs_spark).is_dir() else []
    # Marks that a distribution does not use select nothing.
    left_out = ["server", *(["hypothesis"] if subject.name in SLOW_PROPERTIES else [])]
    chosen = " and ".join(f"not {mark}" for mark in left_out)
    return [str(tests), *without_spark, "-m", f"'{chosen}'"]


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
    return environment_names()


@impl
def tox_add_core_config(core_conf: ConfigSet, state: State) -> None:
    core_conf.loaders.insert(0, MemoryLoader(env_list="\n".join(environment_names())))


@impl
def tox_add_env_config(env_conf: EnvConfigSet, state: State) -> None:
    name = env_conf.name or ""
    present = installed_in(name)
    values = {
        "wheels": " ".join(f"dist/{distribution.wheel_name}" for distribution in present),
        "tests": " ".join(test_arguments(name)),
        "sources": " ".join(sources()),
    }
    for key, value in values.items():
        env_conf.add_config(keys=[key], of_type=str, default=value, desc=f"{key} of this distribution")
