"""Pipelines that tests of `arroyo test` are about."""

EVEN = """\
name: even
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 20, event_time_interval: 1s}}
  - {id: even, operator: std.filter, inputs: [numbers], config: {predicate: "counter % 2 = 0"}}
  - {id: out, operator: std.blackhole, inputs: [even]}
"""

WINDOWS = """\
name: windows
parallelism: 2
nodes:
  - id: orders
    operator: filesystem.source
    config:
      path: FOLDER/orders.csv
      schema: {id: int64, shop: string, amount: "decimal(10,2)", at: timestamp}
      event_time_field: at
  - {id: timed, operator: std.watermark, inputs: [orders], config: {max_lateness: 0s}}
  - id: sums
    operator: std.tumbling_window
    inputs: [timed]
    config:
      size: 10s
      keys: [shop]
      late: side_output
      aggregates: [{function: sum, column: amount, as: total}]
  - {id: out, operator: std.blackhole, inputs: [sums]}
  - {id: late, operator: std.blackhole, inputs: [sums.late]}
"""

TWO = """\
name: two
nodes:
  - {id: left, operator: impulse.source, config: {count: 1}}
  - {id: right, operator: impulse.source, config: {count: 1}}
  - {id: right_in_time, operator: std.watermark, inputs: [right], config: {column: timestamp, idle_time: 5s}}
  - {id: both, operator: std.union, inputs: [left, right_in_time]}
  - id: counts
    operator: std.tumbling_window
    inputs: [both]
    config: {size: 10s, aggregates: [{function: count, as: n}]}
  - {id: out, operator: std.blackhole, inputs: [counts]}
"""
