SELECT customer, id, amount
FROM orders
QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount DESC NULLS LAST, id) <= 5
