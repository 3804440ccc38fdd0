"""What the editor begins with: pipelines that run as they are."""

from __future__ import annotations

from collections.abc import Mapping

from arroyo_console.values import Language

_YAML = """\
name: my_pipeline
checkpoint: {url: ./state, interval: 2s}
nodes:
  - id: numbers
    operator: impulse.source
    config: {rate: 100}
  - id: odd
    operator: std.filter
    inputs: [numbers]
    config: {predicate: counter % 2 = 1}
  - id: out
    operator: std.stdout
    inputs: [odd]
"""

_SQL = """\
SET name = 'busy_auctions';
SET checkpoint.interval = '2 seconds';

CREATE TABLE bids (
  WATERMARK FOR date_time AS date_time - INTERVAL '1 second'
) WITH (
  connector = 'nexmark',
  table = 'bid',
  rate = 200
);

SELECT auction, count(*) AS bids, max(price) AS highest, tumble(INTERVAL '10 seconds') AS window
FROM bids
GROUP BY auction, window;
"""

SAMPLES: Mapping[Language, str] = {Language.YAML: _YAML, Language.SQL: _SQL}
