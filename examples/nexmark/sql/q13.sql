-- Nexmark q13, bounded side input join: bids with a label from a table in a file.
SET name = 'nexmark_sql_q13';
SET parallelism = 2;
SET checkpoint.interval = '10 seconds';

CREATE TABLE bids WITH (
  connector = 'nexmark',
  table = 'bid',
  events = 1000000
);

CREATE TABLE side_input (
  key BIGINT PRIMARY KEY,
  value TEXT
) WITH (
  connector = 'filesystem',
  type = 'lookup',
  path = './examples/data/nexmark_side_input.parquet',
  cache.max_bytes = '16MiB',
  cache.ttl = '1 hour'
);

CREATE TABLE files WITH (
  connector = 'filesystem',
  type = 'sink',
  path = './out/nexmark_sql/q13',
  format = 'parquet'
);

INSERT INTO files
SELECT auction, bidder, price, date_time, side_input.value
FROM bids JOIN side_input ON bids.auction % 10000 = side_input.key;
