WITH sums AS (
    SELECT
        customer,
        time_bucket(INTERVAL 10 seconds, moment) AS window_start,
        window_start + INTERVAL 10 seconds AS window_end,
        window_end - INTERVAL 1 microsecond AS window_time,
        sum(amount)::BIGINT AS total
    FROM orders
    GROUP BY customer, window_start
)
SELECT
    *,
    rank() OVER (PARTITION BY window_start ORDER BY total DESC NULLS LAST) AS place,
    sum(total) OVER (PARTITION BY window_start)::BIGINT AS of_all,
    lead(total) OVER (PARTITION BY window_start ORDER BY total DESC NULLS LAST, customer) AS next_best
FROM sums
