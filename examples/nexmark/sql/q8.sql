-- Nexmark q8, monitor new users: people who registered and offered something within the same ten seconds.
SET name = 'nexmark_sql_q8';
SET parallelism = 2;
SET checkpoint.interval = '10 seconds';

CREATE TABLE people (
  WATERMARK FOR date_time AS date_time - INTERVAL '1 second'
) WITH (
  connector = 'nexmark',
  table = 'person',
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
  path = './out/nexmark_sql/q8',
  format = 'parquet'
);

INSERT INTO files
SELECT newcomers.id, newcomers.name, newcomers.window.start AS window_start
FROM (
  SELECT id, name, tumble(INTERVAL '10 seconds') AS window FROM people GROUP BY id, name, window
) AS newcomers
JOIN (
  SELECT seller, tumble(INTERVAL '10 seconds') AS window FROM auctions GROUP BY seller, window
) AS sellers
ON newcomers.id = sellers.seller AND newcomers.window = sellers.window;
