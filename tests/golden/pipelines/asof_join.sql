SELECT o.*, payment, order_id, p.customer AS right_customer, paid, p.moment AS right_moment
FROM orders AS o LEFT JOIN payments AS p ON o.customer = p.customer AND p.moment BETWEEN o.moment - INTERVAL 3 seconds AND o.moment
QUALIFY row_number() OVER (PARTITION BY o.id ORDER BY p.moment DESC) = 1
