SELECT
    customer,
    time_bucket(INTERVAL 1 minute, moment) AS minute,
    coalesce(sum(amount), 0)::BIGINT AS total,
    minute + INTERVAL 1 minute AS sent_at
FROM orders
GROUP BY customer, minute
