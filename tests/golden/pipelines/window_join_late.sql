SELECT id, payment, time_bucket(INTERVAL 2 seconds, o.moment) AS window_start
FROM orders AS o JOIN payments AS p
    ON id = order_id AND time_bucket(INTERVAL 2 seconds, o.moment) = time_bucket(INTERVAL 2 seconds, p.moment)
