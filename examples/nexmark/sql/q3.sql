-- Nexmark q3, local item suggestion: who sells something of category 10 in Oregon, Idaho or California?
-- A seller may register shortly after the auction was announced, or long before, so both sides wait for each other.
SET name = 'nexmark_sql_q3';
SET parallelism = 2;
SET checkpoint.interval = '10 seconds';
SET updating_ttl = '1 hour';

CREATE TABLE auctions (
  WATERMARK FOR date_time AS date_time - INTERVAL '1 second'
) WITH (
  connector = 'nexmark',
  table = 'auction',
  events = 1000000
);

CREATE TABLE people (
  WATERMARK FOR date_time AS date_time - INTERVAL '1 second'
) WITH (
  connector = 'nexmark',
  table = 'person',
  events = 1000000
);

CREATE TABLE files WITH (
  connector = 'filesystem',
  type = 'sink',
  path = './out/nexmark_sql/q3',
  format = 'parquet'
);

INSERT INTO files
SELECT people.name, people.city, people.state, auctions.id
FROM auctions JOIN people ON auctions.seller = people.id
WHERE auctions.category = 10 AND people.state IN ('OR', 'ID', 'CA');
