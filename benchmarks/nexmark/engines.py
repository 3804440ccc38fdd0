"""Who is measured, and how much each is given."""

from __future__ import annotations

from dataclasses import dataclass

from .queries import COMPARED, QUERIES

OURS = "arroyo"
OURS_ON_CSV = "arroyo_csv"
OURS_LIVE = "arroyo_live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine in an environment of its own."""

    name: str
    title: str
    #: What it is: `ours`, a `peer` that streams, or a `reference` that sees all rows at once.
    kind: str
    environment: str
    #: The module of this package that runs it.
    script: str
    #: The format of the files that it reads.
    format: str = "parquet"
    queries: tuple[str, ...] = COMPARED
    #: The most events that it is given by default; None for as many as ours.
    max_events: int | None = None
    #: How it was used.
    note: str = ""

    @property
    def is_text(self) -> bool:
        return self.format != "parquet"

    @property
    def module(self) -> str:
        return f"{__package__}.{self.script}"


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            name=OURS,
            title="Arroyo on Spark",
            kind="ours",
            environment="arroyo",
            script="engine_arroyo",
            queries=tuple(QUERIES),
            note="the pipelines of `examples/nexmark`; exactly-once checkpoints every 10 s, exactly-once Parquet sink",
        ),
        Engine(
            name=OURS_LIVE,
            title="Arroyo on Spark, live",
            kind="ours",
            environment="arroyo",
            script="engine_arroyo_live",
            note="as above, with `execution: live`",
        ),
        Engine(
            name="structured_streaming",
            title="Structured Streaming",
            kind="peer",
            environment="structured_streaming",
            script="engine_structured_streaming",
            note="`AvailableNow`, RocksDB with changelog checkpoints; Parquet sink (q17, q18: `foreachBatch`, "
            "appended). Windows still open at the end are not written, and not expected",
        ),
        Engine(
            name="flink",
            title="PyFlink Table API",
            kind="peer",
            environment="flink",
            script="engine_flink",
            format="csv",
            max_events=5_000_000,
            note="exactly-once checkpoints every 10 s; pip's Flink reads no Parquet, so CSV in and out (q18: "
            "Debezium's JSON out), times in milliseconds, one file, since rows of several come too late; net runtime "
            "as Flink tells it",
        ),
        Engine(
            name=OURS_ON_CSV,
            title="Arroyo on Spark, CSV",
            kind="ours",
            environment="arroyo",
            script="engine_arroyo",
            format="csv_header",
            max_events=5_000_000,
            note="as above, with the rows of PyFlink's files, CSV in and out (q18: Debezium's JSON out)",
        ),
        Engine(
            name="bytewax",
            title="Bytewax",
            kind="peer",
            environment="bytewax",
            script="engine_bytewax",
            max_events=500_000,
            note="two processes with a worker each, recovery on with a snapshot every 10 s; rows read with pyarrow, "
            "answers as lines of CSV",
        ),
        Engine(
            name="pathway",
            title="Pathway",
            kind="peer",
            environment="pathway",
            script="engine_pathway",
            format="csv_header",
            max_events=200_000,
            note="CSV in and out, two threads, persistence on",
        ),
        Engine(
            name="polars",
            title="Polars, batch",
            kind="reference",
            environment="polars",
            script="engine_polars",
            note="streaming engine, two threads, no checkpoints",
        ),
        Engine(
            name="duckdb",
            title="DuckDB, batch",
            kind="reference",
            environment="duckdb",
            script="engine_duckdb",
            note="two threads, no checkpoints",
        ),
        Engine(
            name="pyarrow",
            title="bare pyarrow loop",
            kind="reference",
            environment="pyarrow",
            script="engine_pyarrow",
            note="one Python thread (pyarrow computes in two), no checkpoints",
        ),
    )
}
