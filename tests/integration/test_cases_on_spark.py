"""The tests of a pipeline give on Spark what they give in process."""

import pytest

PIPELINE = """\
name: sums
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 1}}
  - {id: in_time, operator: std.watermark, inputs: [numbers], config: {column: timestamp, max_lateness: 0s}}
  - id: sums
    operator: std.tumbling_window
    inputs: [in_time]
    config: {size: 10s, keys: [subtask_index], late: side_output, aggregates: [{function: count, as: n}]}
  - {id: out, operator: std.blackhole, inputs: [sums]}
  - {id: late, operator: std.blackhole, inputs: [sums.late]}
tests:
  - name: on spark
    parallelism: 2
    steps:
      - rows: {numbers: [{counter: 1, subtask_index: 7, timestamp: 2026-03-01T09:00:01Z}]}
      - rows: {numbers: [{counter: 2, subtask_index: 7, timestamp: 2026-03-01T09:00:12Z}]}
      - crash
      - rows: {numbers: [{counter: 3, subtask_index: 7, timestamp: 2026-03-01T09:00:02Z}]}
      - expect: {sums: [{subtask_index: 7, n: 1}], sums.late: [{counter: 3}]}
      - rescale: 1
      - rows: {numbers: [{counter: 4, subtask_index: 7, timestamp: 2026-03-01T09:00:13Z}]}
    expect:
      out: [{subtask_index: 7, n: 1}, {subtask_index: 7, n: 2}]
"""


@pytest.mark.timeout(300)
def test_steps_crashes_and_expectations_are_the_same_on_spark(arroyo, tmp_path):
    path = tmp_path / "sums.yaml"
    path.write_text(PIPELINE)
    in_process = arroyo("test", path)
    assert in_process.returncode == 0, in_process.stdout + in_process.stderr
    on_spark = arroyo("test", "--spark", path)
    assert on_spark.returncode == 0, on_spark.stdout + on_spark.stderr
    assert "ok    on spark" in on_spark.stdout
