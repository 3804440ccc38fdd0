-- Nexmark q15, bidding statistics: bids, bidders and auctions of each day, by how high the bids are.
SET name = 'nexmark_sql_q15';
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
  path = './out/nexmark_sql/q15',
  format = 'parquet'
);

INSERT INTO files
SELECT
  to_char(window.start, '%Y-%m-%d') AS day,
  total_bids, rank1_bids, rank2_bids, rank3_bids,
  total_bidders, rank1_bidders, rank2_bidders, rank3_bidders,
  total_auctions, rank1_auctions, rank2_auctions, rank3_auctions
FROM (
  SELECT
    tumble(INTERVAL '1 day') AS window,
    count(*) AS total_bids,
    count(*) FILTER (WHERE price < 10000) AS rank1_bids,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
    count(DISTINCT bidder) AS total_bidders,
    count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
    count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
    count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
    count(DISTINCT auction) AS total_auctions,
    count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
    count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
    count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
  FROM bids
  GROUP BY window
);
