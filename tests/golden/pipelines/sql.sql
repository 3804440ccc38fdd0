SELECT id, upper(coalesce(customer, 'none')) AS customer, amount * weight AS load, moment
FROM orders
WHERE amount > 100 AND NOT urgent
