SELECT payment, customer, moment, paid // 25 AS size
FROM payments
QUALIFY row_number() OVER (PARTITION BY customer, size ORDER BY moment) = 1
