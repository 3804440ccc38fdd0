SELECT
    time_bucket(INTERVAL 7 seconds, moment, TIMESTAMP '1970-01-01 00:00:03') AS window_start,
    window_start + INTERVAL 7 seconds AS window_end,
    window_end - INTERVAL 1 microsecond AS window_time,
    count(*) AS orders,
    sum(amount)::BIGINT AS total
FROM orders
GROUP BY window_start
