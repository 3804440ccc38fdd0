WITH ordered AS (
    SELECT customer, time_bucket(INTERVAL 5 seconds, moment) AS window_start, sum(amount)::BIGINT AS amount
    FROM orders GROUP BY ALL
),
settled AS (
    SELECT customer, time_bucket(INTERVAL 5 seconds, moment) AS window_start, sum(paid)::BIGINT AS paid
    FROM payments GROUP BY ALL
)
SELECT
    customer, amount, paid, window_start,
    window_start + INTERVAL 5 seconds AS window_end,
    window_end - INTERVAL 1 microsecond AS window_time
FROM ordered LEFT JOIN settled USING (customer, window_start)
