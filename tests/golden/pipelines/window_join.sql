WITH joined AS (
    SELECT
        o.id, o.customer AS order_customer, o.amount, o.weight, o.urgent, o.moment AS order_moment,
        p.payment, p.order_id, p.customer AS payment_customer, p.paid, p.moment AS payment_moment,
        time_bucket(INTERVAL 5 seconds, coalesce(o.moment, p.moment)) AS window_start
    FROM orders AS o FULL JOIN payments AS p
        ON o.customer = p.customer AND time_bucket(INTERVAL 5 seconds, o.moment) = time_bucket(INTERVAL 5 seconds, p.moment)
)
SELECT
    *,
    window_start + INTERVAL 5 seconds AS window_end,
    window_end - INTERVAL 1 microsecond AS window_time
FROM joined
