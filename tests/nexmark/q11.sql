WITH gaps AS (
    SELECT *, date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time) AS gap FROM bid
),
numbered AS (
    SELECT *, count(*) FILTER (WHERE gap >= INTERVAL 10 seconds) OVER (PARTITION BY bidder ORDER BY date_time) AS session
    FROM gaps
)
SELECT
    bidder,
    count(*) AS bid_count,
    min(date_time) AS start_time,
    max(date_time) + INTERVAL 10 seconds AS end_time
FROM numbered
GROUP BY bidder, session
