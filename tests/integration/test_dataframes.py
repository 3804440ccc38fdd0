"""DataFrames as the input of pipelines: `Pipeline.run(spark, inputs={...})`."""

from __future__ import annotations

import pytest

from arroyo_core import DataError, Pipeline, SetupError

from .dataframes import counted, spark_windows, windows, written_windows


@pytest.fixture
def frame(spark, bids):
    return spark.read.parquet(str(bids))


def test_windows_over_a_dataframe_are_those_of_spark_sql(spark, frame, tmp_path):
    result = Pipeline.from_yaml(windows(tmp_path / "job")).run(spark, inputs={"bids": frame})
    assert result.is_finished
    # One epoch, and columns that the pipeline does not need are not read.
    assert (result.epochs, result.source_rows) == (1, 200_000)
    assert written_windows(spark, tmp_path / "job") == spark_windows(frame)


def test_a_table_is_given_by_its_name(spark, frame, tmp_path):
    frame.limit(1000).createOrReplaceTempView("given_bids")
    Pipeline.from_yaml(windows(tmp_path / "job")).run(spark, inputs={"bids": "given_bids"})
    assert written_windows(spark, tmp_path / "job") == spark_windows(spark.table("given_bids"))


@pytest.mark.parametrize("partitions", [1, 7])
def test_any_number_of_partitions_and_of_subtasks_gives_the_same(spark, frame, tmp_path, partitions):
    given = frame.coalesce(1) if partitions == 1 else frame.repartition(partitions, "auction")
    Pipeline.from_yaml(windows(tmp_path / "job", parallelism=3)).run(spark, inputs={"bids": given})
    assert written_windows(spark, tmp_path / "job") == spark_windows(frame)


def test_a_dataframe_without_rows_ends_a_pipeline_without_output(spark, frame, tmp_path):
    result = Pipeline.from_yaml(windows(tmp_path / "job")).run(spark, inputs={"bids": frame.filter("1 = 0")})
    assert (result.is_finished, result.source_rows) == (True, 0)


def test_instants_do_not_depend_on_the_time_zone_of_the_session(spark, frame, tmp_path):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        Pipeline.from_yaml(windows(tmp_path / "job")).run(spark, inputs={"bids": frame.limit(5000)})
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert written_windows(spark, tmp_path / "job") == spark_windows(frame.limit(5000))


UNION = """
  - id: more
    operator: spark.input
    config:
      schema: {price: int64, auction: int64, channel: string, date_time: timestamp}
      event_time_field: date_time
  - id: ordered
    operator: std.project
    inputs: [more]
    config: {keep: [auction, price, channel, date_time]}
  - id: both
    operator: std.union
    inputs: [bids, ordered]
"""


def test_several_dataframes_come_together_in_one_pipeline(spark, frame, tmp_path):
    path = windows(tmp_path / "job", more=UNION.lstrip("\n"), last="both")
    left, right = frame.filter("auction < 1030"), frame.filter("auction >= 1030")
    Pipeline.from_yaml(path).run(spark, inputs={"more": right, "bids": left})
    assert written_windows(spark, tmp_path / "job") == spark_windows(frame)


BESIDE = """
  - id: files
    operator: filesystem.source
    config: {path: %s, event_time_field: date_time, batch_rows: 1000}
  - id: file_columns
    operator: std.project
    inputs: [files]
    config: {keep: [auction, price, channel, date_time]}
  - id: both
    operator: std.union
    inputs: [bids, file_columns]
"""


def test_beside_a_source_of_several_epochs_a_dataframe_is_read_in_the_first_only(spark, frame, bids, tmp_path):
    path = windows(tmp_path / "job", more=(BESIDE % bids).lstrip("\n"), last="both")
    path.write_text(path.read_text().replace("interval: 10s", "rows: 50000"))
    result = Pipeline.from_yaml(path).run(spark, inputs={"bids": frame})
    assert result.epochs > 2
    assert result.source_rows == 400_000
    assert written_windows(spark, tmp_path / "job") == spark_windows(frame.union(frame))


def test_a_job_that_has_ended_does_not_read_its_dataframe_again(spark, frame, tmp_path):
    path = windows(tmp_path / "job")
    Pipeline.from_yaml(path).run(spark, inputs={"bids": frame})
    poisoned = frame.selectExpr("raise_error('read again') as auction", "price", "channel", "date_time")
    poisoned = poisoned.withColumn("auction", poisoned.auction.cast("bigint"))
    result = Pipeline.from_yaml(path).run(spark, inputs={"bids": poisoned})
    assert (result.is_finished, result.epochs) == (True, 0)
    assert written_windows(spark, tmp_path / "job") == spark_windows(frame)


STRIKE = """
  - id: strike
    operator: chaos.strike
    inputs: [bids]
    config: {deed: %s, marker: %s, at: 3, times: 1}
"""


@pytest.mark.parametrize("deed", ["outage", "kill_worker"])
def test_a_failure_before_publication_reads_the_dataframe_again_and_counts_rows_once(spark, frame, tmp_path, deed):
    path = windows(tmp_path / "job", more=(STRIKE % (deed, tmp_path / "struck")).lstrip("\n"), last="strike")
    result = Pipeline.from_yaml(path).run(spark, inputs={"bids": frame})
    assert (tmp_path / "struck-0").exists()
    assert result.is_finished
    assert written_windows(spark, tmp_path / "job") == spark_windows(frame)


def test_columns_that_differ_are_all_named_before_anything_runs(spark, frame, tmp_path):
    wrong = frame.selectExpr(
        "cast(auction as int) as auction", "channel as Channel", "cast(date_time as timestamp_ntz) as date_time"
    )
    with pytest.raises(DataError) as raised:
        Pipeline.from_yaml(windows(tmp_path / "job")).run(spark, inputs={"bids": wrong})
    text = str(raised.value)
    assert "the DataFrame for 'bids' is not what its schema declares" in text
    assert "auction: declared int64, but the DataFrame has int" in text
    assert "price: missing" in text
    assert "channel: missing; there is Channel" in text
    assert "it has no time zone: cast it to timestamp in Spark" in text
    assert not (tmp_path / "job" / "state").exists()


def test_inputs_must_be_those_of_the_pipeline(spark, frame, tmp_path):
    pipeline = Pipeline.from_yaml(windows(tmp_path / "job"))
    with pytest.raises(SetupError, match=r"'bidz' is not a node of the pipeline .*did you mean 'bids'"):
        pipeline.run(spark, inputs={"bidz": frame})
    with pytest.raises(SetupError, match="'out' takes no rows of the run"):
        pipeline.run(spark, inputs={"bids": frame, "out": frame})
    with pytest.raises(SetupError, match=r"inputs=\{'bids': df\}"):
        pipeline.run(spark)


def test_live_workers_are_refused_for_dataframes(spark, frame, tmp_path):
    with pytest.raises(SetupError, match="rows of DataFrames come through Spark jobs"):
        Pipeline.from_yaml(windows(tmp_path / "job")).run(spark, inputs={"bids": frame}, execution="live")


NESTED = """
name: nested
parallelism: 2
checkpoint: {url: %(folder)s/state, interval: 10s}
nodes:
  - id: rows
    operator: spark.input
    config:
      schema:
        a.b: int64
        amount: decimal(12,2)
        day: date
        raw: binary
        tags: list<string>
        place: "struct<lat: float64, at: timestamp>"
        counts: map<string, int64>
  - id: out
    operator: filesystem.sink
    inputs: [rows]
    config: {path: %(folder)s/out, format: parquet}
"""


def test_nulls_and_nested_types_come_through_as_they_are(spark, tmp_path):
    rows = spark.sql(
        """select id as `a.b`, cast(id / 4 as decimal(12,2)) as amount, date'2024-01-01' + cast(id as int) as day,
        cast(cast(id as string) as binary) as raw, if(id % 3 = 0, null, array('x', cast(id as string))) as tags,
        if(id % 5 = 0, null, struct(id / 2 as lat, timestamp_micros(id) as at)) as place,
        map('n', id) as counts, 'unread' as other from range(100)"""
    )
    path = tmp_path / "nested.yaml"
    path.write_text(NESTED % {"folder": tmp_path})
    Pipeline.from_yaml(path).run(spark, inputs={"rows": rows})
    written = spark.read.parquet(f"{tmp_path}/out/part-*.parquet")

    def as_text(frame):
        return counted(frame.selectExpr("`a.b`", "amount", "day", "hex(raw)", "to_json(struct(tags, place, counts))"))

    assert as_text(written) == as_text(rows)
