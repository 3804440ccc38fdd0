-- name: a view
CREATE VIEW many AS SELECT customer, count(*) AS n FROM orders GROUP BY customer;
SELECT customer, n FROM many WHERE n > 8
-- duckdb:
SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING count(*) > 8

-- name: a view read twice
CREATE VIEW few AS SELECT n, a FROM numbers WHERE a > 0;
SELECT n FROM few UNION ALL SELECT a FROM few
-- duckdb:
SELECT n FROM numbers WHERE a > 0 UNION ALL SELECT a FROM numbers WHERE a > 0

-- name: a view joined with itself
CREATE VIEW keyed AS SELECT w, k FROM words WHERE k IS NOT NULL;
SELECT x.w, y.w AS v FROM keyed x JOIN keyed y ON x.w = y.w AND x.k = y.k
-- duckdb:
SELECT x.w, y.w AS v FROM words x JOIN words y ON x.w = y.w AND x.k = y.k

-- name: views of views
CREATE VIEW one AS SELECT a + 1 AS x, b FROM numbers;
CREATE VIEW two AS SELECT x * 2 AS y, b FROM one WHERE b > 0;
SELECT y - b AS z FROM two
-- duckdb:
SELECT (a + 1) * 2 - b AS z FROM numbers WHERE b > 0

-- name: a view with names of columns
CREATE VIEW renamed (p, q) AS SELECT w, k FROM words;
SELECT q, p FROM renamed
-- duckdb:
SELECT k AS q, w AS p FROM words

-- name: a memory table
CREATE TABLE kept (name TEXT, total BIGINT);
INSERT INTO kept SELECT customer, sum(amount) FROM orders GROUP BY customer;
SELECT name, total + 1 AS t FROM kept
-- duckdb:
SELECT customer AS name, sum(amount) + 1 AS t FROM orders GROUP BY customer

-- name: a memory table casts to its types
CREATE TABLE kept (x DOUBLE, y TEXT);
INSERT INTO kept SELECT a, b FROM numbers;
SELECT x / 4 AS x, y || '!' AS y FROM kept
-- duckdb:
SELECT a / 4.0 AS x, CAST(b AS TEXT) || '!' AS y FROM numbers

-- name: a memory table that several statements write
CREATE TABLE kept (name TEXT, n BIGINT);
INSERT INTO kept SELECT customer, amount FROM orders;
INSERT INTO kept (n, name) SELECT level, customer FROM customers;
SELECT name, count(*) AS c, sum(n) AS s FROM kept GROUP BY name
-- duckdb:
SELECT name, count(*) AS c, sum(n) AS s FROM (SELECT customer AS name, amount AS n FROM orders UNION ALL SELECT customer, level FROM customers) GROUP BY name

-- name: windows over a memory table that several statements write
CREATE TABLE kept (who TEXT, happened TIMESTAMP);
INSERT INTO kept SELECT customer, placed FROM orders;
INSERT INTO kept SELECT customer, paid_at FROM payments;
SELECT window.start AS s, count(*) AS n FROM (SELECT count(*) AS c, who, tumble(INTERVAL '10 seconds') AS window FROM kept GROUP BY who, window) GROUP BY window
-- duckdb:
SELECT s, count(*) AS n FROM (SELECT DISTINCT who, time_bucket(INTERVAL '10 seconds', happened) AS s FROM (SELECT customer AS who, placed AS happened FROM orders UNION ALL SELECT customer, paid_at FROM payments)) GROUP BY s

-- name: a memory table of results that change, written twice
CREATE TABLE kept (name TEXT, n BIGINT);
INSERT INTO kept SELECT customer, count(*) FROM orders GROUP BY customer;
INSERT INTO kept SELECT customer, count(*) FROM payments GROUP BY customer;
SELECT name, max(n) AS m FROM kept GROUP BY name
-- duckdb:
SELECT name, max(n) AS m FROM (SELECT customer AS name, count(*) AS n FROM orders GROUP BY 1 UNION ALL SELECT customer, count(*) FROM payments GROUP BY 1) GROUP BY name

-- name: a table by a query
CREATE TABLE made AS SELECT w, length(w) AS l FROM words;
SELECT l, count(*) AS n FROM made GROUP BY l
-- duckdb:
SELECT length(w) AS l, count(*) AS n FROM words GROUP BY 1

-- name: a view of windows
CREATE VIEW counted AS SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2;
SELECT window.start AS s, max(n) AS n FROM counted GROUP BY window
-- duckdb:
SELECT s, max(n) AS n FROM (SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS s, count(*) AS n FROM orders GROUP BY 1, 2) GROUP BY s

-- name: a view that nobody reads
CREATE VIEW unread AS SELECT customer FROM orders;
SELECT w FROM words WHERE k = 1
-- duckdb:
SELECT w FROM words WHERE k = 1

-- name: a setting before a query
SET updating_ttl = '1 day';
SELECT k, count(*) AS n FROM words GROUP BY k
-- duckdb:
SELECT k, count(*) AS n FROM words GROUP BY k

-- name: the same filter in a view and above it
CREATE VIEW positive AS SELECT * FROM numbers WHERE a > 0;
SELECT n FROM positive WHERE a > 0 AND b > 0
-- duckdb:
SELECT n FROM numbers WHERE a > 0 AND b > 0

-- name: a view with a star keeps the order of columns
CREATE VIEW whole AS SELECT * FROM customers;
SELECT * FROM whole WHERE level > 1
-- duckdb:
SELECT * FROM customers WHERE level > 1

-- name: rows of values
-- refused: 1:19 a query of a stream reads a table
SELECT x, y FROM (VALUES (1, 'a'), (2, NULL), (2, NULL)) AS t (x, y)

-- name: a query without a table
-- refused: 1:1 a query of a stream reads a table
SELECT 1 AS one, 'a' AS letter

-- name: nulls are inserted with the types of their columns
CREATE TABLE kept (name TEXT, n BIGINT, at_time TIMESTAMP);
INSERT INTO kept SELECT customer, NULL, NULL AS t FROM customers;
INSERT INTO kept (n, name) SELECT level, NULL FROM customers;
SELECT name, n, at_time FROM kept
-- duckdb:
SELECT customer AS name, NULL AS n, NULL AS at_time FROM customers UNION ALL SELECT NULL, level, NULL FROM customers
