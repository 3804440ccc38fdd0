-- Nexmark q22, URL directories: the first three folders of the address through which a bid came.
SET name = 'nexmark_sql_q22';
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
  path = './out/nexmark_sql/q22',
  format = 'parquet'
);

INSERT INTO files
SELECT
  auction,
  bidder,
  price,
  channel,
  split_part(url, '/', 4) AS dir1,
  split_part(url, '/', 5) AS dir2,
  split_part(url, '/', 6) AS dir3
FROM bids;
