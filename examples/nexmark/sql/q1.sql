-- Nexmark q1, currency conversion: prices in euros.
SET name = 'nexmark_sql_q1';
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
  path = './out/nexmark_sql/q1',
  format = 'parquet'
);

INSERT INTO files
SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)) AS price, date_time, extra
FROM bids;
