-- Nexmark q0, pass through: every bid as it came. The least that a pipeline can cost.
SET name = 'nexmark_sql_q0';
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
  path = './out/nexmark_sql/q0',
  format = 'parquet'
);

INSERT INTO files
SELECT auction, bidder, price, date_time, extra FROM bids;
