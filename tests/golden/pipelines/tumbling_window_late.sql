SELECT
    customer,
    time_bucket(INTERVAL 10 seconds, moment) AS window_start,
    window_start + INTERVAL 10 seconds AS window_end,
    window_end - INTERVAL 1 microsecond AS window_time,
    count(*) AS orders,
    sum(amount)::BIGINT AS total
FROM orders
GROUP BY customer, window_start
