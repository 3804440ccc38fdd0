-- Nexmark q5, hot items: every two seconds, the auctions with most bids in the last ten; all of them where several have as many.
SET name = 'nexmark_sql_q5';
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
  path = './out/nexmark_sql/q5',
  format = 'parquet'
);

INSERT INTO files
SELECT auction, num, window.start AS window_start, window.end AS window_end
FROM (
  SELECT *, rank() OVER (PARTITION BY window ORDER BY num DESC) AS place
  FROM (
    SELECT auction, count(*) AS num, hop(INTERVAL '2 seconds', INTERVAL '10 seconds') AS window
    FROM bids
    GROUP BY auction, window
  )
)
WHERE place = 1;
