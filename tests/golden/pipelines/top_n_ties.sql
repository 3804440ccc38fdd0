WITH in_windows AS (
    SELECT
        id,
        moment,
        amount // 10 AS tens,
        unnest(range(3)) AS number,
        time_bucket(INTERVAL 5 seconds, moment) - number * INTERVAL 5 seconds AS window_start,
        window_start + INTERVAL 15 seconds AS window_end,
        window_end - INTERVAL 1 microsecond AS window_time
    FROM orders
)
SELECT * EXCLUDE number, rank() OVER (PARTITION BY window_start ORDER BY tens DESC NULLS LAST) AS place
FROM in_windows
QUALIFY place <= 2
