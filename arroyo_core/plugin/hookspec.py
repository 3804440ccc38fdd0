"""The hooks that plugins implement: this file is their manual.

A plugin is a module named by an entry point of the group `arroyo_core`:

    [project.entry-points.arroyo_core]
    acme = "acme.plugin"

The entry point's name is the prefix of the plugin's operators: `acme.running_count`.
The module is imported by every command, so it must import no client library by itself.

A hook is a function of the module with the name of one below, marked with `@hookimpl`. A plugin implements at least
one of them. A hook that raises takes nothing but its own plugin's part away, and `arroyo plugins` shows why.
"""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pluggy

from arroyo_core.api import Registry

PROJECT = "arroyo_core"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def arroyo_register(registry: Registry) -> None:
    """Add operators (`registry.add`) and UDFs (`registry.add_udf`).

    Called once per process, when plugins are discovered: on the driver, and on executors.
    If it raises, nothing of this plugin is registered, and only pipelines that use it fail.
    """


@hookspec
def arroyo_add_command(commands: Any) -> None:
    """Add commands to `arroyo`, with `commands.add_parser(name, ...)`; `commands` is an `arroyo_core.cli.Commands`.

    `commands.actions(name)` takes actions of a command that is there, as `checkpoints` has them, and
    `commands.parser("run")` more options.

    Called when the command line starts, unless it is about a command or an action of the core, so the code of a
    command is imported when it is run; for `run` always. A command that two plugins add is an error that names both,
    for whoever uses it.
    """


@hookspec
def arroyo_progress(plan: Any, out: Any) -> Any:
    """How a run is shown on a terminal: an `arroyo_core.cli.Progress` for this plan, which writes to `out`; or None.

    Called once by `arroyo run`, where it is to show a live view. What sinks print to stdout must stay as it is.
    """


@hookspec
def arroyo_draw(pipeline: Any, heading: str, notes: Mapping[str, Sequence[str]]) -> Any:
    """A picture of a pipeline for notebooks: an SVG document as text, or None.

    `pipeline` is an `arroyo_core.pipeline.PlannedPipeline`; `heading` is a line below its name, and `notes` are lines
    below nodes, by id. Whatever is in them must be escaped, and the document must have no scripts. Called whenever a
    notebook shows a pipeline or a job. One plugin at most has it.
    """


@hookspec
def arroyo_run_several() -> Any:
    """What runs several pipelines in one session: a function from the parsed arguments of `arroyo run` to an exit code.

    Called by `arroyo run` where it is given a folder, or more than one file; `args.files` are as they were given. One
    plugin at most has it.
    """


@hookspec
def arroyo_observe(args: Any, plans: Sequence[Any]) -> Any:
    """Who else is told about the jobs of an `arroyo run`: an `arroyo_core.cli.Observer`, or None.

    Called once, with the parsed arguments and the plans of all jobs, before the first of them starts.
    """


@hookspec
def arroyo_provision(args: Any, plans: Sequence[Any]) -> Any:
    """What makes what executors get with the Spark of an `arroyo run`: an `arroyo_core.spark.Provider`, or None.

    Called once, with the parsed arguments and the plans of all jobs, before Spark is started; not where jobs run
    without Spark. One plugin at most has one.
    """


@hookspec
def arroyo_format() -> Sequence[Any]:
    """Formats of messages and files, which every connector finds by name: `Format`s of the library of formats.

    Called once per process, by the first connector that looks for a format.
    """


@hookspec
def arroyo_storage() -> Sequence[Any]:
    """Kinds of storage for checkpoints: `arroyo_core.state.StorageKind`s, each for some protocols of URLs.

    Called once per process, when the first URL is opened whose protocol is not one of the core's own.
    """


@hookspec
def arroyo_table_type() -> Sequence[Any]:
    """Types of state tables beside the core's: subclasses of `arroyo_core.state.Table`.

    Called once per process, on the driver and on executors, when the first such table is met.
    """


@hookspec
def arroyo_language() -> Sequence[Any]:
    """Languages of files: `arroyo_core.pipeline.Language`s, each for files with certain endings.

    Called once per process, when the first file is read.
    """


@hookspec
def arroyo_expansion() -> Sequence[Any]:
    """Nodes of pipeline files that stand for others: `arroyo_core.pipeline.expansions.Expansion`s.

    Called when a file with a node is planned that has no operator.
    """


@hookspec
def arroyo_section() -> Sequence[Any]:
    """Keys of pipeline files that the core does not read itself: `arroyo_core.pipeline.Section`s.

    Called once per process, when the first file is read.
    """


@hookspec
def arroyo_conformance() -> Sequence[Any]:
    """Checks of the conformance kit beside its own: `Rule`s, for cases of certain types.

    Called once per process, by the first suite that is collected.
    """
