SELECT
    customer,
    time_bucket(INTERVAL 20 seconds, moment) AS window_start,
    window_start + INTERVAL 20 seconds AS window_end,
    window_end - INTERVAL 1 microsecond AS window_time,
    sum(amount)::BIGINT AS total
FROM orders
GROUP BY customer, window_start
