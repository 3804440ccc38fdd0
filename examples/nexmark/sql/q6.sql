-- Nexmark q6, average selling price by seller: the mean price of each seller's last ten auctions that were sold.
-- The winner of an auction changes while it is open: then the ten of its seller change, and then their mean.
SET name = 'nexmark_sql_q6';
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
  path = './out/nexmark_sql/q6',
  format = 'debezium_json'
);

INSERT INTO files
WITH winners AS (
  SELECT *
  FROM (
    SELECT
      auctions.id,
      auctions.seller,
      bids.price,
      bids.date_time,
      row_number() OVER (PARTITION BY auctions.id ORDER BY bids.price DESC, bids.date_time) AS place  -- arroyo: ignore[unbounded-state] auctions and sellers are few here
    FROM auctions JOIN bids
      ON auctions.id = bids.auction
      -- No auction is open longer than ten seconds: the bound lets the join forget what is older.
      AND bids.date_time BETWEEN auctions.date_time AND auctions.date_time + INTERVAL '10 seconds'
    WHERE bids.date_time <= auctions.expires
  )
  WHERE place = 1
),
last_ten AS (
  SELECT *
  FROM (
    SELECT seller, price, row_number() OVER (PARTITION BY seller ORDER BY date_time DESC) AS place
    FROM winners
  )
  WHERE place <= 10
)
SELECT seller, avg(price) AS price FROM last_ten GROUP BY seller;
