"""Makes a test from a pipeline: the first rows of its real sources, and what comes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from arroyo_core.api import ConstructedOperator
from arroyo_core.errors import SetupError
from arroyo_core.pipeline.plan import Node
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.assembly import construct
from arroyo_testing.cases.cells import rows_of
from arroyo_testing.cases.comparison import Difference
from arroyo_testing.cases.files import CaseFile, case_file_of, load_case_file
from arroyo_testing.cases.rendering import row_yaml, text_yaml
from arroyo_testing.cases.rewiring import sources_of
from arroyo_testing.cases.running import MemoryPlace
from arroyo_testing.cases.suite import PipelineCases
from arroyo_testing.cases.updating import update_text
from arroyo_testing.source_harness import SourceHarness

#: How long to wait for the rows of a source.
WAIT_MS = 30_000
_NAME = "recorded"


def record_case(pipeline: PipelineCases, *, rows: int) -> Path:
    """Write the test beside the pipeline, with at most `rows` rows of each source; returns its file.

    Raises `SetupError` where there is such a file already.
    """
    path = case_file_of(pipeline.path)
    if path.exists():
        raise SetupError(f"{path} is there already: move it away, or add to it by hand")
    planned = pipeline.planned(1, {})
    recorded = {name: record_rows(node, pipeline.plugins, rows=rows) for name, node in sources_of(planned.plan).items()}
    text = case_text(pipeline.path.name, recorded, sorted(planned.sinks))
    path.write_text(text, encoding="utf-8")
    try:
        file = load_case_file(path)
        path.write_text(update_case(pipeline, file), encoding="utf-8")
    except BaseException:
        path.unlink()
        raise
    return path


def record_rows(node: Node, plugins: PluginSet, *, rows: int) -> list[pa.Table]:
    """The first rows of a source, batch by batch."""

    def make() -> ConstructedOperator:
        return construct(node, plugins)

    harness = SourceHarness(make)
    try:
        found = harness.run(rows=rows, interval_ms=WAIT_MS).batches
    finally:
        harness.close()
    tables = []
    for batch in found:
        part = batch.slice(0, rows)
        rows -= part.num_rows
        if part.num_rows:
            tables.append(pa.Table.from_batches([part]))
    return tables


def case_text(pipeline: str, recorded: Mapping[str, Sequence[pa.Table]], sinks: Sequence[str]) -> str:
    """A file with one test, which expects nothing yet. Batch n of every source is in step n."""
    lines = [
        f"# Recorded from {pipeline} by `arroyo test --record`: check that what it expects is what you want.",
        "tests:",
        f"  - name: {_NAME}",
    ]
    steps = max((len(tables) for tables in recorded.values()), default=0)
    lines.append("    steps:" if steps else "    steps: []")
    for step in range(steps):
        lines.append("      - rows:")
        for source, tables in recorded.items():
            if step < len(tables):
                lines.append(f"          {text_yaml(source)}:")
                lines += [f"            - {row}" for row in _row_texts(tables[step])]
    lines.append("    expect:")
    lines += [f"      {text_yaml(sink)}: []" for sink in sinks]
    return "\n".join(lines) + "\n"


def update_case(pipeline: PipelineCases, file: CaseFile) -> str:
    """The text of a file whose tests expect what comes."""
    differences: list[Difference] = []
    for spec in file.cases:
        result = pipeline.run(file, spec, MemoryPlace())
        if result.error is not None:
            raise result.error
        differences += result.differences
    return update_text(file.text, differences, file=str(file.path))


def _row_texts(table: pa.Table) -> list[str]:
    names, types = table.schema.names, table.schema.types
    return [row_yaml(row, names, types) for row in rows_of(table)]
