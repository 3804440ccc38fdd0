-- Nexmark q10, log to file system: all bids into one folder per day and minute.
SET name = 'nexmark_sql_q10';
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
  path = './out/nexmark_sql/q10',
  format = 'parquet',
  partition_by = ['dt', 'hm']
);

INSERT INTO files
SELECT
  auction, bidder, price, date_time, extra,
  to_char(date_time, '%Y-%m-%d') AS dt,
  to_char(date_time, '%H:%M') AS hm
FROM bids;
