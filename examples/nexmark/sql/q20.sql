-- Nexmark q20, expand bid with auction: bids on auctions of category 10, with all about the auction.
-- A bid may come shortly before its auction, or long after it, so both sides wait for each other.
SET name = 'nexmark_sql_q20';
SET parallelism = 2;
SET checkpoint.interval = '10 seconds';
SET updating_ttl = '1 minute';

CREATE TABLE bids (
  WATERMARK FOR date_time AS date_time - INTERVAL '1 second'
) WITH (
  connector = 'nexmark',
  table = 'bid',
  events = 1000000
);

CREATE TABLE auctions (
  WATERMARK FOR date_time AS date_time - INTERVAL '1 second'
) WITH (
  connector = 'nexmark',
  table = 'auction',
  events = 1000000
);

CREATE TABLE files WITH (
  connector = 'filesystem',
  type = 'sink',
  path = './out/nexmark_sql/q20',
  format = 'parquet'
);

INSERT INTO files
SELECT
  bids.auction, bids.bidder, bids.price, bids.channel, bids.url,
  bids.date_time AS bid_date_time, bids.extra AS bid_extra,
  auctions.item_name, auctions.description, auctions.initial_bid, auctions.reserve,
  auctions.date_time AS auction_date_time, auctions.expires, auctions.seller, auctions.category,
  auctions.extra AS auction_extra
FROM bids JOIN auctions ON bids.auction = auctions.id
WHERE auctions.category = 10;
