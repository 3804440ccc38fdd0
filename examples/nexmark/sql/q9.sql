-- Nexmark q9, winning bids: the highest bid of each auction; of equal ones the first.
SET name = 'nexmark_sql_q9';
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
  path = './out/nexmark_sql/q9',
  format = 'debezium_json'
);

INSERT INTO files
SELECT
  id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
  auction, bidder, price, bid_date_time, bid_extra
FROM (
  SELECT
    auctions.*,
    bids.auction,
    bids.bidder,
    bids.price,
    bids.date_time AS bid_date_time,
    bids.extra AS bid_extra,
    row_number() OVER (PARTITION BY auctions.id ORDER BY bids.price DESC, bids.date_time) AS place  -- arroyo: ignore[unbounded-state] auctions are few here
  FROM auctions JOIN bids
    ON auctions.id = bids.auction
    -- No auction is open longer than ten seconds: the bound lets the join forget what is older.
    AND bids.date_time BETWEEN auctions.date_time AND auctions.date_time + INTERVAL '10 seconds'
  WHERE bids.date_time <= auctions.expires
)
WHERE place = 1;
