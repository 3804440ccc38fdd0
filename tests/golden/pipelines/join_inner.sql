SELECT
    o.*,
    payment, order_id, p.customer AS right_customer, paid, p.moment AS right_moment,
    greatest(o.moment, p.moment) AS join_time
FROM orders AS o JOIN payments AS p ON id = order_id
