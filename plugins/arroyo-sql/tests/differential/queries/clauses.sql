-- name: group by all
SELECT customer, urgent, count(*) AS n FROM orders GROUP BY ALL

-- name: union all by name
SELECT a, b FROM numbers UNION ALL BY NAME SELECT b, a FROM numbers

-- name: all columns but one
SELECT * EXCLUDE (note) FROM orders

-- name: all columns with another value of one
SELECT * REPLACE (a + 1 AS a) FROM numbers

-- name: select all
SELECT ALL id FROM orders

-- name: pairs in a list
SELECT n, a FROM numbers WHERE (a, n) IN ((1, 2), (2, 3), (7, 1)) OR (n, n) IN ((1, 1), (7, 7))

-- name: equality of pairs
SELECT n FROM numbers WHERE (a, b) = (1, 2) OR (a, b) = (n, a) OR n = 1

-- name: any element of a list
SELECT id FROM orders WHERE 'big' = ANY(tags)

-- name: a having with a subquery
SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING count(*) > (SELECT avg(x) FROM (SELECT count(*) AS x FROM orders GROUP BY customer) AS t)

-- name: equality with a scalar subquery of the same table
SELECT n FROM numbers WHERE a = (SELECT max(a) FROM numbers)

-- name: in a union
SELECT id FROM orders WHERE id IN (SELECT order_id FROM payments UNION ALL SELECT n FROM numbers)

-- name: distinct groups
SELECT DISTINCT customer, count(*) AS n FROM orders GROUP BY customer

-- name: not exists in the same table
SELECT w FROM words x WHERE NOT EXISTS (SELECT 1 FROM words y WHERE y.v = x.w)

-- name: a left join of a lateral subquery
SELECT o.id, p.payment FROM orders o LEFT JOIN LATERAL (SELECT payment FROM payments p WHERE p.order_id = o.id) AS p ON TRUE

-- name: a condition that nothing fulfils
SELECT count(*) AS n, customer FROM orders WHERE NOT (id = 5 AND id = 6) GROUP BY customer

-- name: names that change places
SELECT n AS a, a AS n FROM numbers WHERE n > 3

-- name: aggregates that take the names of columns
SELECT customer AS amount, count(amount) AS customer FROM orders GROUP BY customer

-- name: names of windows for other columns
SELECT n AS window_start, a AS window_end FROM numbers

-- name: groups by a column that is called as windows are
SELECT window_start, count(*) AS c FROM (SELECT b AS window_start FROM numbers) AS t GROUP BY window_start

-- name: a maximum of counts
SELECT max(x) AS y, sum(x) AS s FROM (SELECT count(*) AS x FROM orders GROUP BY customer) AS t

-- name: a distinct count of maxima
SELECT count(DISTINCT x) AS y FROM (SELECT max(amount) AS x FROM orders GROUP BY customer) AS t

-- name: a median of maxima
SELECT median(x) AS y FROM (SELECT max(weight) AS x FROM orders GROUP BY customer) AS t

-- name: a join by two expressions of one table
SELECT x.id, y.id AS other FROM orders x JOIN orders y ON x.id = y.id + 1 AND x.customer = y.customer

-- name: a filter of two times after a join
SELECT o.id FROM orders o JOIN payments p ON o.id = p.order_id WHERE o.placed < p.paid_at

-- name: a full join by time
SELECT o.id, p.payment FROM orders o FULL JOIN payments p ON o.id = p.order_id AND p.paid_at BETWEEN o.placed AND o.placed + INTERVAL '20 seconds'

-- name: a right join by time
SELECT o.id, p.payment FROM orders o RIGHT JOIN payments p ON o.id = p.order_id AND p.paid_at BETWEEN o.placed AND o.placed + INTERVAL '20 seconds'

-- name: a join by equal times
SELECT o.id, p.payment FROM orders o JOIN payments p ON o.placed = p.paid_at

-- name: a left join by equal times
SELECT o.id, p.payment FROM orders o LEFT JOIN payments p ON o.placed = p.paid_at

-- name: a filter by coalesce after a left join
SELECT o.id FROM orders o LEFT JOIN payments p ON o.id = p.order_id WHERE coalesce(p.paid, 0) = 0

-- name: a left join with a literal in its condition
SELECT o.id, c.level FROM orders o LEFT JOIN customers c ON o.customer = c.customer AND c.level = 2

-- name: a right join with a literal in its condition
SELECT o.id, c.level FROM customers c RIGHT JOIN orders o ON o.customer = c.customer AND c.level = 2

-- name: all columns of one side
SELECT o.* FROM orders o JOIN customers c ON o.customer = c.customer

-- name: a window by the times of a join
SELECT count(*) AS n FROM orders o JOIN payments p ON o.id = p.order_id GROUP BY tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT count(*) AS n FROM orders o JOIN payments p ON o.id = p.order_id GROUP BY time_bucket(INTERVAL '10 seconds', greatest(o.placed, p.paid_at))

-- name: a window of filtered times
SELECT count(*) AS n FROM orders WHERE placed > TIMESTAMP '1970-01-01 00:00:10' GROUP BY tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT count(*) AS n FROM orders WHERE placed > TIMESTAMP '1970-01-01 00:00:10' GROUP BY time_bucket(INTERVAL '10 seconds', placed)

-- name: a window when the time has another name
SELECT count(*) AS n FROM (SELECT placed AS p FROM orders) AS t GROUP BY tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT count(*) AS n FROM orders GROUP BY time_bucket(INTERVAL '10 seconds', placed)

-- name: a sum by the start of windows
SELECT s, sum(n) AS m FROM (SELECT window.start AS s, n FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS t) AS u GROUP BY s
-- duckdb:
SELECT time_bucket(INTERVAL '10 seconds', placed) AS s, count(*) AS m FROM orders GROUP BY 1

-- name: distinct windows
SELECT DISTINCT window.start AS s FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS t
-- duckdb:
SELECT DISTINCT time_bucket(INTERVAL '10 seconds', placed) AS s FROM orders

-- name: a join of rows with windows
SELECT o.customer, t.n FROM orders o JOIN (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM payments GROUP BY 1, 2) AS t ON o.customer = t.customer
-- duckdb:
SELECT o.customer, t.n FROM orders o JOIN (SELECT customer, time_bucket(INTERVAL '10 seconds', paid_at) AS w, count(*) AS n FROM payments GROUP BY 1, 2) AS t ON o.customer = t.customer

-- name: windows of customers that are known
SELECT customer, n FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS t WHERE customer IN (SELECT customer FROM customers)
-- duckdb:
SELECT customer, n FROM (SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2) AS t WHERE customer IN (SELECT customer FROM customers)

-- name: a union of windows
SELECT customer, count(*) AS n FROM orders GROUP BY customer, tumble(INTERVAL '10 seconds') UNION ALL SELECT customer, count(*) AS n FROM payments GROUP BY customer, tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT customer, count(*) AS n FROM orders GROUP BY customer, time_bucket(INTERVAL '10 seconds', placed) UNION ALL SELECT customer, count(*) AS n FROM payments GROUP BY customer, time_bucket(INTERVAL '10 seconds', paid_at)

-- name: a frame of groups
SELECT id, sum(amount) OVER (PARTITION BY window ORDER BY id GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, sum(amount) OVER (PARTITION BY time_bucket(INTERVAL '20 seconds', placed) ORDER BY id GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM orders

-- name: a frame of a range
SELECT id, sum(amount) OVER (PARTITION BY window ORDER BY id RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, sum(amount) OVER (PARTITION BY time_bucket(INTERVAL '20 seconds', placed) ORDER BY id RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS x FROM orders

-- name: a frame of rows
SELECT id, sum(amount) OVER (PARTITION BY window ORDER BY id ROWS 2 PRECEDING) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, sum(amount) OVER (PARTITION BY time_bucket(INTERVAL '20 seconds', placed) ORDER BY id ROWS 2 PRECEDING) AS x FROM orders

-- name: distinct texts in an order
SELECT customer, string_agg(DISTINCT note, ',' ORDER BY note) AS x FROM orders GROUP BY customer

-- name: the first value by time
SELECT customer, first_value(id ORDER BY placed) AS x FROM orders GROUP BY customer
-- duckdb:
SELECT customer, arg_min(id, (placed, id)) AS x FROM orders GROUP BY customer

-- name: sums of small numbers do not overflow
SELECT sum(s) AS s, sum(i) AS i, avg(i) AS m FROM (SELECT CAST(32767 AS SMALLINT) AS s, CAST(2147483647 AS INT) AS i FROM numbers) AS t

-- name: decimals by decimals
SELECT id, price * price AS x FROM orders

-- name: empty sums of decimals by filters
SELECT customer, sum(price) FILTER (WHERE price > 100) AS x, avg(price) FILTER (WHERE price > 1000) AS y FROM orders GROUP BY customer

-- name: elements joined to a list
SELECT id, tags || ['x'] AS t FROM orders WHERE tags IS NOT NULL

-- name: numbers as texts in a pattern
SELECT n FROM numbers WHERE CAST(a AS TEXT) LIKE '-%'

-- name: an aggregate of a scalar subquery and groups
SELECT min(id) AS a, max(id) AS b, customer FROM orders WHERE amount > (SELECT min(paid) FROM payments) GROUP BY customer

-- name: a union with a part of itself
SELECT a FROM numbers UNION SELECT a FROM numbers WHERE a > 0

-- name: a left join of distinct rows and groups
SELECT t.customer, u.n FROM (SELECT DISTINCT customer FROM orders) AS t LEFT JOIN (SELECT customer, count(*) AS n FROM payments GROUP BY customer) AS u ON t.customer = u.customer

-- name: a condition that is never true
SELECT count(*) AS n, max(c) AS m FROM (SELECT a * 2 AS c FROM numbers WHERE 1 = 2)

-- name: all columns under a condition that is never true
SELECT count(*) AS n FROM (SELECT * FROM words WHERE CAST(NULL AS BOOLEAN))

-- name: an aggregate of no rows has a row
SELECT count(*) AS n, max(a) AS m FROM numbers WHERE 1 = 2

-- name: a condition that is always true on an aggregate of all rows
SELECT n FROM (SELECT count(*) AS n FROM numbers) WHERE 1 = 1

-- name: a condition that is never true on an aggregate of all rows
-- refused: 1:51 a condition that reads no column is not planned
SELECT n FROM (SELECT count(*) AS n FROM numbers) WHERE n IS NULL

-- name: having that is never true on an aggregate of all rows
-- refused: 1:35 a condition that reads no column is not planned
SELECT count(*) AS n FROM numbers HAVING 1 = 2
