SELECT
    *,
    lag(amount) OVER (PARTITION BY customer ORDER BY moment, id) AS before,
    lag(id, 3, -1) OVER (PARTITION BY customer ORDER BY moment, id) AS third_before,
    lead(amount, 2) OVER (PARTITION BY customer ORDER BY moment, id) AS second_behind
FROM orders
