"""What is fuzzed, by name. Modules of targets are imported late, so that atheris sees what they import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
CORPUS = FOLDER / "corpus"

#: Takes an input, and raises an `ArroyoError` or nothing; `AssertionError` where a promise is broken.
Run = Callable[[bytes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that reads bytes of somebody else."""

    name: str
    #: For people.
    what: str
    #: The module of this package, and its function, that are run.
    module: str
    function: str = "run"
    #: The packages and modules whose branches guide the search.
    instrumented: tuple[str, ...]

    def load(self) -> Run:
        run: Run = getattr(import_module(f"tests.fuzz.{self.module}"), self.function)
        return run

    def inputs(self) -> list[Path]:
        """The inputs in the repository."""
        return sorted(path for path in (CORPUS / self.name).iterdir() if path.is_file())


_FORMATS = ("arroyo_formats", "arroyo_core.api.updating", "arroyo_core.api.units")

TARGETS = {
    target.name: target
    for target in (
        Target(
            name="yaml",
            what="pipeline files: text to a specification, and `arroyo fmt`",
            module="yaml_files",
            instrumented=("yaml", "arroyo_core.pipeline", "arroyo_core.api", "arroyo_devtools.formatting"),
        ),
        Target(
            name="metadata",
            what="metadata of checkpoints, with claims, markers, manifests and statuses, and starting from them",
            module="metadata",
            instrumented=("arroyo_core.state", "arroyo_core.runtime", "arroyo_jobs.checkpoints", "arroyo_filesystem"),
        ),
        Target(
            name="frames",
            what="frames of the exchange, and the reports in them",
            module="frames",
            instrumented=("arroyo_core.runtime", "arroyo_core.spark.frame_batches", "arroyo_core.state"),
        ),
        Target(
            name="dlq",
            what="dead-letter files and claims of replays",
            module="dead_letters",
            instrumented=("arroyo_dlq", "arroyo_core.api.dead_letters", "arroyo_core.cli"),
        ),
        Target(name="csv", what="CSV files and messages", module="texts", function="run_csv", instrumented=_FORMATS),
        Target(
            name="json",
            what="JSON and Debezium JSON, files and messages",
            module="texts",
            function="run_json",
            instrumented=_FORMATS,
        ),
        Target(
            name="sql",
            what="SQL scripts, with what DataFusion makes of their queries, to a plan",
            module="sql_scripts",
            instrumented=("arroyo_sql", "arroyo_core.pipeline"),
        ),
        Target(
            name="statements",
            what="SQL scripts to statements, without their queries",
            module="sql_scripts",
            function="run_statements",
            instrumented=("arroyo_sql",),
        ),
        Target(
            name="binary", what="Avro files and messages, Protobuf messages", module="binary", instrumented=_FORMATS
        ),
    )
}
