SELECT o.*, c.customer AS right_customer, level
FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.customer
