SELECT
    o.*,
    payment, order_id, p.customer AS right_customer, paid, p.moment AS right_moment,
    greatest(o.moment, p.moment) AS join_time
FROM orders AS o FULL JOIN payments AS p
    ON o.customer = p.customer AND p.moment BETWEEN o.moment - INTERVAL 1 second AND o.moment + INTERVAL 2 seconds
