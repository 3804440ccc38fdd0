"""Whether plugins load, and whether a pipeline file is one."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from arroyo_core.errors import ArroyoError, InvalidPipelineError
from arroyo_core.pipeline import Plan, plan_pipeline
from arroyo_core.pipeline.planner import Planning
from arroyo_core.pipeline.views.labels import count
from arroyo_core.plugin import PluginReport, installed_plugins
from arroyo_devtools.doctor.findings import Finding, failed, ok, warning


def check_plugins() -> Iterator[Finding]:
    reports = installed_plugins().reports
    if not reports:
        yield failed("plugins", "none is installed", "pip install arroyo-std arroyo-filesystem")
    for report in reports:
        yield _plugin_finding(report)


def _plugin_finding(report: PluginReport) -> Finding:
    check = f"plugin {report.name}"
    if report.is_blocked:
        return warning(check, f"{report.origin} is blocked", "take it out of ARROYO_BLOCK_PLUGINS")
    if report.error:
        fix = f"pip install --force-reinstall {report.origin.distribution}, or uninstall it"
        return failed(check, f"{report.origin} does not load: {report.error}", fix)
    unmet = list(_unmet(report.origin.distribution))
    if unmet:
        return failed(check, f"{report.origin} needs {unmet[0]}", f"pip install {' '.join(map(repr, unmet))}")
    brought = f"{count(len(report.operators), 'operator')}, {count(len(report.udfs), 'function')}"
    return ok(check, f"{report.origin} loads ({brought})")


def _unmet(distribution: str) -> Iterator[str]:
    """What a distribution asks for and the environment has not."""
    try:
        texts = requires(distribution) or []
    except PackageNotFoundError:
        return
    for text in texts:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            is_met = requirement.specifier.contains(version(requirement.name), prereleases=True)
        except PackageNotFoundError:
            is_met = False
        if not is_met:
            yield f"{requirement.name}{requirement.specifier}"


def plan_of(file: str, planning: Planning) -> tuple[Plan | None, Finding]:
    """The plan of a pipeline file, and what there is to say of it; `planning` are the arguments of `plan_pipeline`."""
    try:
        plan = plan_pipeline(file, **planning)
    except InvalidPipelineError as error:
        mistakes = count(len(error.errors), "mistake")
        return None, failed("pipeline", f"{file} has {mistakes}: {error.errors[0]}", f"arroyo validate {file}")
    except ArroyoError as error:
        return None, failed("pipeline", f"{file} cannot be planned: {error}", f"arroyo validate {file}")
    return plan, ok("pipeline", f"{file} is valid ({len(plan.nodes)} nodes)")
