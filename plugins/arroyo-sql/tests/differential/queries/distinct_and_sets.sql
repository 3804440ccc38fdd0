-- name: distinct
SELECT DISTINCT customer FROM orders

-- name: distinct rows
SELECT DISTINCT customer, urgent FROM orders

-- name: distinct of all columns
SELECT DISTINCT * FROM words

-- name: distinct of expressions
SELECT DISTINCT a % 3 AS x, a > 0 AS y FROM numbers

-- name: distinct of null
SELECT DISTINCT w FROM words WHERE w IS NULL

-- name: distinct of groups
SELECT DISTINCT n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS t

-- name: count of distinct rows
SELECT count(*) AS n FROM (SELECT DISTINCT w, v FROM words) AS t

-- name: distinct on
-- refused: 1:8 DISTINCT ON is not planned
SELECT DISTINCT ON (customer) customer, id FROM orders ORDER BY customer, id

-- name: distinct on of the last
-- refused: 1:8 DISTINCT ON is not planned
SELECT DISTINCT ON (customer) customer, id, amount FROM orders ORDER BY customer, id DESC

-- name: distinct on two columns
-- refused: 1:8 DISTINCT ON is not planned
SELECT DISTINCT ON (customer, urgent) customer, urgent, id FROM orders ORDER BY customer, urgent, id

-- name: union all
SELECT a AS x FROM numbers UNION ALL SELECT b FROM numbers

-- name: union all of three
SELECT a AS x FROM numbers UNION ALL SELECT b FROM numbers UNION ALL SELECT k FROM words

-- name: union all of one table with itself
SELECT n FROM numbers UNION ALL SELECT n FROM numbers

-- name: union all of several columns and literals
SELECT 'a' AS side, a AS x, n FROM numbers UNION ALL SELECT 'b', b, n FROM numbers

-- name: union all of several types
SELECT a AS x FROM numbers UNION ALL SELECT d FROM numbers

-- name: union all with null
SELECT w AS x FROM words UNION ALL SELECT NULL FROM words

-- name: union
SELECT a AS x FROM numbers UNION SELECT b FROM numbers

-- name: union of rows
SELECT w, v FROM words UNION SELECT v, w FROM words

-- name: union of itself
SELECT w FROM words UNION SELECT w FROM words

-- name: union and union all
SELECT a FROM numbers UNION SELECT b FROM numbers UNION ALL SELECT k FROM words

-- name: intersect
SELECT w FROM words INTERSECT SELECT v FROM words

-- name: except
SELECT w FROM words EXCEPT SELECT v FROM words WHERE k = 1

-- name: except with null
SELECT a FROM numbers EXCEPT SELECT b FROM numbers

-- name: except all
-- refused: 1:21 EXCEPT ALL is not planned
SELECT w FROM words EXCEPT ALL SELECT v FROM words

-- name: intersect all
-- refused: 1:21 INTERSECT ALL is not planned
SELECT w FROM words INTERSECT ALL SELECT v FROM words

-- name: groups of a union
SELECT x, count(*) AS n FROM (SELECT a AS x FROM numbers UNION ALL SELECT b FROM numbers) AS t GROUP BY x

-- name: a union of groups
SELECT customer, count(*) AS n FROM orders GROUP BY customer UNION ALL SELECT customer, count(*) AS n FROM payments GROUP BY customer

-- name: a union of rows and groups
-- refused: 1:42 UNION of a stream that changes and one that only adds is not planned
SELECT customer, amount AS x FROM orders UNION ALL SELECT customer, count(*) AS x FROM payments GROUP BY customer

-- name: a filter of a union
SELECT x FROM (SELECT a AS x FROM numbers UNION ALL SELECT b FROM numbers) AS t WHERE x > 0

-- name: a union of subqueries with other filters
SELECT n FROM numbers WHERE a > 0 UNION ALL SELECT n FROM numbers WHERE a < 0

-- name: union by position and not by name
SELECT a, b FROM numbers UNION ALL SELECT b, a FROM numbers

-- name: a union of streams in time
SELECT customer, placed AS t FROM orders UNION ALL SELECT customer, paid_at FROM payments
