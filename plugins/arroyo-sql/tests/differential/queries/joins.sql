-- name: an inner join
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.id = p.order_id

-- name: an inner join by the word
SELECT o.id, p.payment FROM orders o INNER JOIN payments p ON p.order_id = o.id

-- name: a join of one key that is often there
SELECT o.id, c.level FROM orders o JOIN customers c ON o.customer = c.customer

-- name: a left join
SELECT o.id, p.payment FROM orders o LEFT JOIN payments p ON o.id = p.order_id

-- name: a right join
SELECT o.id, p.payment FROM orders o RIGHT JOIN payments p ON o.id = p.order_id

-- name: a full join
SELECT o.id, p.payment FROM orders o FULL JOIN payments p ON o.id = p.order_id

-- name: null keys never meet
SELECT a.n, b.n AS m FROM numbers a JOIN numbers b ON a.a = b.b

-- name: null keys of a left join
SELECT o.id, o.customer, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.customer

-- name: null keys of a full join
SELECT o.id, c.customer, c.region FROM orders o FULL OUTER JOIN customers c ON o.customer = c.customer

-- name: two keys
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.customer = p.customer AND o.amount = p.paid

-- name: two keys of a left join
SELECT o.id, p.payment FROM orders o LEFT JOIN payments p ON o.customer = p.customer AND o.amount = p.paid

-- name: using
SELECT customer, id, level FROM orders JOIN customers USING (customer)

-- name: a left join by using
SELECT customer, id, level FROM orders LEFT JOIN customers USING (customer)

-- name: using in a left join, of both sides and in groups
SELECT o.customer AS a, c.customer AS b, customer AS d, count(level) AS n FROM orders o LEFT OUTER JOIN customers c USING (customer) GROUP BY o.customer, c.customer, customer

-- name: using in a full join
-- refused: 1:60 USING in a RIGHT or FULL JOIN is not planned
SELECT customer, id, level FROM orders FULL JOIN customers USING (customer)

-- name: a natural join
-- refused: 1:30 NATURAL JOIN depends on the names of all columns
SELECT id, level FROM orders NATURAL JOIN customers

-- name: all columns of a join
-- refused: 1:1 two columns are called 'customer'
SELECT * FROM payments p JOIN customers c ON p.customer = c.customer

-- name: all columns of a join by using
-- refused: 1:39 USING with SELECT * is not planned
SELECT * FROM payments JOIN customers USING (customer)

-- name: a join with itself
SELECT x.n, y.n AS m FROM numbers x JOIN numbers y ON x.a = y.a

-- name: a join of names that both have
SELECT o.customer AS a, p.customer AS b FROM orders o JOIN payments p ON o.id = p.order_id

-- name: a join of expressions
SELECT x.n, y.n AS m FROM numbers x JOIN numbers y ON x.a + 1 = y.b * 2

-- name: a join of other types
SELECT o.id, c.customer FROM orders o JOIN customers c ON o.amount = c.level

-- name: a join of a whole with a floating number
SELECT x.n, y.n AS m FROM numbers x JOIN numbers y ON x.a = y.d

-- name: a join by the list of tables
SELECT o.id, p.payment FROM orders o, payments p WHERE o.id = p.order_id

-- name: a residual condition of an inner join
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.customer = p.customer AND o.amount > p.paid

-- name: a residual condition of a left join
SELECT o.id, p.payment FROM orders o LEFT JOIN payments p ON o.id = p.order_id AND o.amount > p.paid

-- name: a residual condition of a right join
SELECT o.id, p.payment FROM orders o RIGHT JOIN payments p ON o.id = p.order_id AND o.amount > p.paid

-- name: a residual condition of a full join
SELECT o.id, p.payment FROM orders o FULL JOIN payments p ON o.id = p.order_id AND o.amount > p.paid

-- name: a condition of the left side of a left join
SELECT o.id, p.payment FROM orders o LEFT JOIN payments p ON o.id = p.order_id AND o.urgent

-- name: a condition of the right side of a left join
SELECT o.id, p.payment FROM orders o LEFT JOIN payments p ON o.id = p.order_id AND p.paid > 1

-- name: a condition of one side of a full join
SELECT o.id, p.payment FROM orders o FULL JOIN payments p ON o.id = p.order_id AND p.paid > 1

-- name: a filter after a left join
SELECT o.id FROM orders o LEFT JOIN payments p ON o.id = p.order_id WHERE p.payment IS NULL

-- name: a filter that makes a left join an inner one
SELECT o.id, p.paid FROM orders o LEFT JOIN payments p ON o.id = p.order_id WHERE p.paid > 0

-- name: a filter of both sides
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.id = p.order_id WHERE o.urgent AND p.method = 'card'

-- name: three tables
SELECT o.id, p.payment, c.level FROM orders o JOIN payments p ON o.id = p.order_id JOIN customers c ON o.customer = c.customer

-- name: two left joins
SELECT o.id, p.payment, c.level FROM orders o LEFT JOIN payments p ON o.id = p.order_id LEFT JOIN customers c ON p.customer = c.customer

-- name: a join of a subquery
SELECT o.id, t.n FROM orders o JOIN (SELECT customer, count(*) AS n FROM payments GROUP BY customer) AS t ON o.customer = t.customer

-- name: a left join of groups
SELECT c.customer, t.s FROM customers c LEFT JOIN (SELECT customer, sum(amount) AS s FROM orders GROUP BY customer) AS t ON c.customer = t.customer

-- name: a join of two groups
SELECT a.customer, a.n, b.m FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS a JOIN (SELECT customer, sum(paid) AS m FROM payments GROUP BY customer) AS b ON a.customer = b.customer

-- name: a full join of two groups
SELECT a.customer, a.n, b.customer AS other, b.m FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS a FULL JOIN (SELECT customer, sum(paid) AS m FROM payments GROUP BY customer) AS b ON a.customer = b.customer

-- name: groups of a join
SELECT c.region, count(*) AS n, sum(o.amount) AS s FROM orders o JOIN customers c ON o.customer = c.customer GROUP BY c.region

-- name: groups of a left join
SELECT c.region, count(o.id) AS n FROM customers c LEFT JOIN orders o ON o.customer = c.customer GROUP BY c.region

-- name: count distinct of a join
SELECT c.level, count(DISTINCT o.customer) AS n FROM orders o JOIN customers c ON o.customer = c.customer GROUP BY c.level

-- name: duplicates on both sides multiply
SELECT x.w, y.k FROM words x JOIN words y ON x.w = y.v

-- name: a join by a boolean
SELECT o.id, t.x FROM orders o JOIN (SELECT TRUE AS flag, 'yes' AS x FROM customers) AS t ON o.urgent = t.flag

-- name: a left semi join
SELECT o.id FROM orders o LEFT SEMI JOIN payments p ON o.id = p.order_id
-- duckdb:
SELECT o.id FROM orders o SEMI JOIN payments p ON o.id = p.order_id

-- name: a left anti join
SELECT o.id FROM orders o LEFT ANTI JOIN payments p ON o.id = p.order_id
-- duckdb:
SELECT o.id FROM orders o ANTI JOIN payments p ON o.id = p.order_id

-- name: a cross join
-- refused: 1:47 a join of streams needs an equality of columns of both sides
SELECT c.customer, x.n FROM customers c CROSS JOIN numbers x

-- name: a join without equality
-- refused: 1:37 a join of streams needs an equality of columns of both sides
SELECT x.n, y.n AS m FROM numbers x JOIN numbers y ON x.a < y.b

-- name: a join by time between
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.customer = p.customer AND p.paid_at BETWEEN o.placed - INTERVAL '3 seconds' AND o.placed + INTERVAL '5 seconds'

-- name: a join by time with comparisons
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.customer = p.customer AND p.paid_at >= o.placed AND p.paid_at <= o.placed + INTERVAL '4 seconds'

-- name: a join by time with open bounds
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.customer = p.customer AND p.paid_at > o.placed AND p.paid_at < o.placed + INTERVAL '4 seconds'

-- name: a join by time written from the other side
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.customer = p.customer AND o.placed BETWEEN p.paid_at - INTERVAL '5 seconds' AND p.paid_at

-- name: a left join by time
SELECT o.id, p.payment FROM orders o LEFT JOIN payments p ON o.id = p.order_id AND p.paid_at BETWEEN o.placed AND o.placed + INTERVAL '20 seconds'

-- name: a join by time and another condition
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.customer = p.customer AND p.paid_at BETWEEN o.placed AND o.placed + INTERVAL '4 seconds' AND o.amount > p.paid

-- name: a join by time with a filter
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.customer = p.customer WHERE p.paid_at BETWEEN o.placed AND o.placed + INTERVAL '4 seconds'

-- name: is not distinct from as a key
SELECT x.n, y.n AS m FROM numbers x JOIN numbers y ON x.a IS NOT DISTINCT FROM y.b

-- name: or in the condition of a join
-- refused: 1:38 a join of streams needs an equality of columns of both sides
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.id = p.order_id OR o.customer = p.customer

-- name: a key compared with a literal only
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.id = p.order_id AND p.order_id = 5

-- name: rows with a partner of whom a column of another type differs
SELECT o.id FROM orders o LEFT SEMI JOIN customers c ON o.customer = c.customer AND o.amount IS DISTINCT FROM c.level
-- duckdb:
SELECT o.id FROM orders o SEMI JOIN customers c ON o.customer = c.customer AND o.amount IS DISTINCT FROM c.level
