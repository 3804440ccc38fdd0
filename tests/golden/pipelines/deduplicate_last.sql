SELECT customer, max(moment) AS moment, trunc(amount / 50)::BIGINT AS size
FROM orders
GROUP BY ALL
