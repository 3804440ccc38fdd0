-- Nexmark q7, highest bid: the bids with the highest price of every ten seconds.
SET name = 'nexmark_sql_q7';
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
  path = './out/nexmark_sql/q7',
  format = 'parquet'
);

INSERT INTO files
SELECT auction, bidder, price, date_time, extra
FROM (
  SELECT *, rank() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS place
  FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
)
WHERE place = 1;
