-- Nexmark q17, auction statistics: bids and prices of each auction and day.
SET name = 'nexmark_sql_q17';
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
  path = './out/nexmark_sql/q17',
  format = 'parquet'
);

INSERT INTO files
SELECT
  auction,
  to_char(window.start, '%Y-%m-%d') AS day,
  total_bids, rank1_bids, rank2_bids, rank3_bids,
  min_price, max_price, avg_price, sum_price
FROM (
  SELECT
    auction,
    tumble(INTERVAL '1 day') AS window,
    count(*) AS total_bids,
    count(*) FILTER (WHERE price < 10000) AS rank1_bids,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
    min(price) AS min_price,
    max(price) AS max_price,
    avg(price) AS avg_price,
    sum(price) AS sum_price
  FROM bids
  GROUP BY auction, window
);
