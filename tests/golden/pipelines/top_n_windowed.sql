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
SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY total DESC NULLS LAST, customer NULLS LAST) AS place
FROM sums
QUALIFY place <= 3
