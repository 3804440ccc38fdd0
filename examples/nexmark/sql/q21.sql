-- Nexmark q21, channel id: a number for each channel, by its name or from the URL.
SET name = 'nexmark_sql_q21';
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
  path = './out/nexmark_sql/q21',
  format = 'parquet'
);

INSERT INTO files
SELECT *
FROM (
  SELECT
    auction,
    bidder,
    price,
    channel,
    CASE lower(channel)
      WHEN 'apple' THEN '0'
      WHEN 'google' THEN '1'
      WHEN 'facebook' THEN '2'
      WHEN 'baidu' THEN '3'
      ELSE regexp_match(url, '(&|^)channel_id=([^&]*)')[2]
    END AS channel_id
  FROM bids
)
WHERE channel_id IS NOT NULL;
