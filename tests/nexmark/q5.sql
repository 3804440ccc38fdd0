WITH windows AS (
    SELECT auction, unnest(generate_series(
        time_bucket(INTERVAL 2 seconds, date_time) - INTERVAL 8 seconds,
        time_bucket(INTERVAL 2 seconds, date_time),
        INTERVAL 2 seconds
    )) AS window_start
    FROM bid
),
counts AS (
    SELECT auction, window_start, window_start + INTERVAL 10 seconds AS window_end, count(*) AS num
    FROM windows
    GROUP BY ALL
)
SELECT auction, num, window_start, window_end
FROM counts
QUALIFY rank() OVER (PARTITION BY window_start ORDER BY num DESC) = 1
