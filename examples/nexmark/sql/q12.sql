-- Nexmark q12, processing time windows: how many bids of each bidder arrive in ten seconds by the clock.
-- The only query whose rows differ from run to run; what a bidder's counts add up to does not.
SET name = 'nexmark_sql_q12';
SET parallelism = 2;
SET checkpoint.interval = '10 seconds';

CREATE TABLE bids (
  arrived TIMESTAMP GENERATED ALWAYS AS (now()),
  WATERMARK FOR arrived
) WITH (
  connector = 'nexmark',
  table = 'bid',
  events = 1000000
);

CREATE TABLE files WITH (
  connector = 'filesystem',
  type = 'sink',
  path = './out/nexmark_sql/q12',
  format = 'parquet'
);

INSERT INTO files
SELECT bidder, bid_count, window.start AS start_time, window.end AS end_time
FROM (
  SELECT bidder, count(*) AS bid_count, tumble(INTERVAL '10 seconds') AS window
  FROM bids
  GROUP BY bidder, window
);
