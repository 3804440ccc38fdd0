-- Nexmark q2, selection: the bids on a few auctions.
SET name = 'nexmark_sql_q2';
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
  path = './out/nexmark_sql/q2',
  format = 'parquet'
);

INSERT INTO files
SELECT auction, price FROM bids WHERE auction % 123 = 0;
