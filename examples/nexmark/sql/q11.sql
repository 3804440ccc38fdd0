-- Nexmark q11, user sessions: how many bids each bidder makes before pausing for ten seconds.
SET name = 'nexmark_sql_q11';
SET parallelism = 2;
SET checkpoint.interval = '10 seconds';

CREATE TABLE bids (
  WATERMARK FOR date_time AS date_time - INTERVAL '1 second'
) WITH (
  connector = 'nexmark',
  table = 'bid',
  events = 1000000
);

CREATE TABLE files WITH (
  connector = 'filesystem',
  type = 'sink',
  path = './out/nexmark_sql/q11',
  format = 'parquet'
);

INSERT INTO files
SELECT bidder, bid_count, window.start AS start_time, window.end AS end_time
FROM (
  SELECT bidder, count(*) AS bid_count, session(INTERVAL '10 seconds') AS window
  FROM bids
  GROUP BY bidder, window
);
