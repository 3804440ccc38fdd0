-- Nexmark q18, last bid: the last bid of each bidder on each auction.
SET name = 'nexmark_sql_q18';
SET parallelism = 2;
SET checkpoint.interval = '10 seconds';
SET updating_ttl = '1 hour';

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
  path = './out/nexmark_sql/q18',
  format = 'debezium_json'
);

INSERT INTO files
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place
  FROM bids
)
WHERE place = 1;
