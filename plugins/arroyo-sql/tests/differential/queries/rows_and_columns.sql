-- name: all columns of a table
SELECT * FROM words

-- name: all columns with lists and structs
SELECT * FROM orders

-- name: some columns in another order
SELECT v, w FROM words

-- name: one column twice
SELECT w, w AS again, k FROM words

-- name: an alias in quotes
SELECT w AS "The Word", k AS "select" FROM words

-- name: a table by an alias
SELECT t.w, t.k FROM words AS t

-- name: a table by an alias without as
SELECT t.w FROM words t WHERE t.k = 1

-- name: all columns of an alias and one more
SELECT t.*, k + 1 AS next FROM words t

-- name: names are not case sensitive
SELECT W, K FROM WORDS WHERE K > 0

-- name: a literal beside columns
-- refused: 1:33 NULL has no type here
SELECT 1 AS one, 'x' AS letter, NULL AS nothing, TRUE AS yes, w FROM words

-- name: literals of several types
SELECT -1 AS a, 2.5 AS b, 'it''s' AS c, FALSE AS d, n FROM numbers

-- name: a decimal literal and a number with an exponent
SELECT 1.50 AS a, 1e3 AS b, n FROM numbers

-- name: a comment inside
SELECT w -- the word
     , /* and
     its number */ k
FROM words

-- name: a subquery in from
SELECT x + 1 AS y FROM (SELECT k AS x FROM words WHERE k IS NOT NULL) AS inner_rows

-- name: subqueries in subqueries
SELECT z FROM (SELECT y * 2 AS z FROM (SELECT a + 1 AS y FROM numbers) AS p WHERE y > 0) AS q

-- name: names of columns given by the alias of a table
SELECT p, q FROM (SELECT w, k FROM words) AS t (p, q)

-- name: a common table expression
WITH few AS (SELECT w, k FROM words WHERE k < 2) SELECT * FROM few

-- name: common table expressions of each other
WITH one AS (SELECT a, b FROM numbers), two AS (SELECT a + b AS c FROM one) SELECT c FROM two WHERE c IS NOT NULL

-- name: a common table expression with names of columns
WITH t (x, y) AS (SELECT a, b FROM numbers) SELECT x - y AS z FROM t

-- name: a common table expression read twice
WITH t AS (SELECT n, a FROM numbers WHERE a > 0) SELECT n FROM t UNION ALL SELECT a FROM t

-- name: a common table expression hides a table
WITH words AS (SELECT a AS w FROM numbers) SELECT w FROM words

-- name: the type of a column that is only null
SELECT CAST(NULL AS BIGINT) AS x, n FROM numbers

-- name: an expression without a name
SELECT a + b FROM numbers

-- name: two expressions without names
SELECT a + b, a - b FROM numbers

-- name: a reserved word as a column by quotes
SELECT a AS "order", b AS "group" FROM numbers WHERE a > b

-- name: filter by a column that is not selected
SELECT n FROM numbers WHERE a IS NULL

-- name: filter by nothing
SELECT n FROM numbers WHERE TRUE

-- name: filter of what a subquery computes
SELECT s FROM (SELECT a + b AS s, n FROM numbers) AS t WHERE s > 0 AND n > 3

-- name: two filters, one above the other
SELECT n FROM (SELECT * FROM numbers WHERE a > 0) AS t WHERE b > 0

-- name: times
SELECT id, placed FROM orders

-- name: dates
SELECT customer, born FROM customers

-- name: filter of times
SELECT id FROM orders WHERE placed >= TIMESTAMP '1970-01-01 00:00:00'

-- name: filter of times between
SELECT id FROM orders WHERE placed BETWEEN TIMESTAMP '1969-12-31 23:59:50' AND TIMESTAMP '1970-01-01 00:00:05'

-- name: filter of times by a text
SELECT id FROM orders WHERE placed < '1969-12-31 23:59:50'

-- name: filter of dates
SELECT customer FROM customers WHERE born > DATE '1970-01-01'

-- name: filter of decimals
SELECT id, price FROM orders WHERE price > 0.01

-- name: filter by a column of booleans
SELECT id FROM orders WHERE urgent

-- name: filter by not a column of booleans
SELECT id FROM orders WHERE NOT urgent

-- name: fields of what stands in brackets
SELECT id, (address).city AS c, (orders.address).zip + 1 AS z FROM orders

-- name: fields of a struct that is computed
SELECT id, named_struct('a', amount).a + 1 AS x FROM orders
-- duckdb:
SELECT id, struct_pack(a := amount).a + 1 AS x FROM orders
