-- name: in a subquery
SELECT id FROM orders WHERE id IN (SELECT order_id FROM payments)

-- name: in a subquery of a column with duplicates
SELECT id FROM orders WHERE customer IN (SELECT customer FROM customers)

-- name: in a filtered subquery
SELECT id FROM orders WHERE customer IN (SELECT customer FROM customers WHERE level > 1)

-- name: not in a subquery without nulls
-- refused: 1:32 NOT IN (SELECT ...) depends on every NULL that may still come
SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM payments WHERE order_id IS NOT NULL)

-- name: not in a subquery with nulls finds nothing
-- refused: 1:43 NOT IN (SELECT ...) depends on every NULL that may still come
SELECT count(*) AS n FROM orders WHERE id NOT IN (SELECT order_id FROM payments)

-- name: exists
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.id)

-- name: not exists
SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.id)

-- name: exists with another condition
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.id AND p.paid > o.amount)

-- name: not exists with another condition
SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.id AND p.paid > o.amount)

-- name: exists of two keys
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM payments p WHERE p.customer = o.customer AND p.paid = o.amount)

-- name: a scalar subquery of one row
SELECT id, amount FROM orders WHERE amount > (SELECT avg(paid) FROM payments)

-- name: a scalar subquery as a column
SELECT n, a - (SELECT max(k) FROM words) AS x FROM numbers

-- name: a scalar subquery in an expression
SELECT count(*) AS n FROM orders WHERE amount * 2 > (SELECT max(paid) FROM payments) - 20

-- name: a scalar subquery of nothing is null
SELECT n, (SELECT max(k) FROM words WHERE k > 100) AS x FROM numbers

-- name: a correlated scalar subquery
SELECT c.customer, (SELECT count(*) FROM orders o WHERE o.customer = c.customer) AS n FROM customers c

-- name: a correlated scalar subquery of a sum
SELECT c.customer, (SELECT sum(o.amount) FROM orders o WHERE o.customer = c.customer) AS s FROM customers c

-- name: a correlated scalar subquery in a filter
SELECT o.id FROM orders o WHERE o.amount > (SELECT avg(p.paid) FROM payments p WHERE p.customer = o.customer)

-- name: in or a condition
-- refused: 1:42 IN (SELECT ...) and EXISTS stand in WHERE, joined by AND
SELECT id FROM orders WHERE urgent OR id IN (SELECT order_id FROM payments)

-- name: in and a condition
SELECT id FROM orders WHERE urgent AND id IN (SELECT order_id FROM payments)

-- name: two subqueries
SELECT id FROM orders WHERE id IN (SELECT order_id FROM payments) AND customer IN (SELECT customer FROM customers)

-- name: in a subquery of groups
SELECT id FROM orders WHERE customer IN (SELECT customer FROM payments GROUP BY customer HAVING count(*) > 6)

-- name: groups of in a subquery
SELECT customer, count(*) AS n FROM orders WHERE id IN (SELECT order_id FROM payments) GROUP BY customer

-- name: groups that are in a subquery
SELECT customer, n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS t WHERE customer IN (SELECT customer FROM customers)

-- name: in a subquery of an expression
SELECT n FROM numbers WHERE a + 1 IN (SELECT b * 2 FROM numbers)

-- name: exists without a correlation
-- refused: 1:29 a subquery of EXISTS and IN needs an equality with a column outside
SELECT n FROM numbers WHERE EXISTS (SELECT 1 FROM words WHERE k > 2)

-- name: not exists without a correlation
-- refused: 1:33 a subquery of EXISTS and IN needs an equality with a column outside
SELECT n FROM numbers WHERE NOT EXISTS (SELECT 1 FROM words WHERE k > 100)

-- name: any of a subquery
-- refused: 1:33 IN (SELECT ...) and EXISTS stand in WHERE, joined by AND
SELECT n FROM numbers WHERE a = ANY (SELECT k FROM words)

-- name: in a subquery in a case
-- refused: 1:23 an in subquery cannot be computed here
SELECT n, CASE WHEN a IN (SELECT k FROM words) THEN 'in' ELSE 'out' END AS x FROM numbers

-- name: a lateral subquery
SELECT c.customer, t.id FROM customers c, LATERAL (SELECT o.id FROM orders o WHERE o.customer = c.customer) AS t

-- name: in a subquery of several types
SELECT id FROM orders WHERE amount IN (SELECT level FROM customers)

-- name: a condition that never holds, above an aggregate of all rows
-- refused: 1:72 a condition that reads no column is not planned above an aggregate without GROUP BY
SELECT c FROM (SELECT count(DISTINCT 1) AS c FROM payments) AS t WHERE FALSE

-- name: a condition that never holds, above an aggregate of all rows in an expression
-- refused: 1:97 a condition that reads no column is not planned above an aggregate without GROUP BY
SELECT id FROM orders WHERE id > (SELECT c FROM (SELECT count(*) AS c FROM payments) AS t WHERE FALSE)

-- name: having that never holds
-- refused: 1:43 a condition that reads no column is not planned above an aggregate without GROUP BY
SELECT count(*) AS c FROM payments HAVING FALSE

-- name: an aggregate of all rows of none
SELECT count(*) AS c, min(paid) AS least FROM (SELECT paid FROM payments WHERE FALSE) AS t

-- name: a constant is compared with one value of a stream
SELECT upper(customer) AS c FROM customers WHERE 'a' < (SELECT max(customer) FROM orders)

-- name: a condition that never holds, above an aggregate of groups and one of all rows
-- refused: 1:111 a condition that reads no column is not planned above an aggregate without GROUP BY
SELECT t3.c AS c FROM (SELECT count('A') AS c FROM (SELECT 1 AS k FROM numbers GROUP BY 1) AS t2) AS t3 WHERE FALSE
