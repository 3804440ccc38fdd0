WITH gaps AS (
    SELECT *, moment - lag(moment) OVER (PARTITION BY customer ORDER BY moment) AS gap FROM orders
),
numbered AS (
    SELECT *, count(*) FILTER (WHERE gap >= INTERVAL 1 second) OVER (PARTITION BY customer ORDER BY moment) AS session FROM gaps
)
SELECT
    customer,
    min(moment) AS window_start,
    max(moment) + INTERVAL 1 second AS window_end,
    window_end - INTERVAL 1 microsecond AS window_time,
    count(*) AS orders
FROM numbered
GROUP BY customer, session
