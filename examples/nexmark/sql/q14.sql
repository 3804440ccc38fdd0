-- Nexmark q14, calculation: bids within a range of prices, with the time of day and how many times 'c' is in `extra`.
SET name = 'nexmark_sql_q14';
SET parallelism = 2;
SET checkpoint.interval = '10 seconds';

CREATE TABLE bids WITH (
  connector = 'nexmark',
  table = 'bid',
  events = 1000000
);

CREATE TABLE files WITH (
  connector = 'filesystem',
  type = 'sink',
  path = './out/nexmark_sql/q14',
  format = 'parquet'
);

INSERT INTO files
SELECT
  auction,
  bidder,
  CAST(0.908 * price AS DECIMAL(23, 3)) AS price,
  CASE
    WHEN extract(hour FROM date_time) BETWEEN 8 AND 18 THEN 'dayTime'
    WHEN extract(hour FROM date_time) <= 6 OR extract(hour FROM date_time) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS bid_time_type,
  date_time,
  extra,
  character_length(extra) - character_length(replace(extra, 'c', '')) AS c_counts
FROM bids
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;
