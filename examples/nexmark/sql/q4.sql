-- Nexmark q4, average price for a category: the mean of what auctions of a category were sold for.
-- Two aggregates in a row: the highest bid of an auction changes while it is open, and the mean follows.
SET name = 'nexmark_sql_q4';
SET parallelism = 2;
SET checkpoint.interval = '10 seconds';

CREATE TABLE auctions (
  WATERMARK FOR date_time AS date_time - INTERVAL '1 second'
) WITH (
  connector = 'nexmark',
  table = 'auction',
  events = 1000000
);

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
  path = './out/nexmark_sql/q4',
  format = 'debezium_json'
);

INSERT INTO files
SELECT category, avg(final) AS price
FROM (
  SELECT auctions.category, max(bids.price) AS final
  FROM auctions JOIN bids
    ON auctions.id = bids.auction
    -- No auction is open longer than ten seconds: the bound lets the join forget what is older.
    AND bids.date_time BETWEEN auctions.date_time AND auctions.date_time + INTERVAL '10 seconds'
  WHERE bids.date_time <= auctions.expires
  GROUP BY auctions.id, auctions.category
)
GROUP BY category;
