-- name: pattern of all by SIMILAR TO
-- refused: 1:34 SIMILAR TO is not planned: write x ~ '^(...)$', or LIKE
SELECT id FROM orders WHERE note SIMILAR TO 'g%'

-- name: a sample of a table
-- refused: 1:23 TABLESAMPLE is not planned: write WHERE random() < 0.5
SELECT id FROM orders TABLESAMPLE BERNOULLI (50)

-- name: rows that are locked
-- refused: 1:23 FOR UPDATE is not planned: leave it out, since a stream has no locks
SELECT id FROM orders FOR UPDATE

-- name: a condition as ClickHouse has it
-- refused: 1:23 PREWHERE is not planned: write WHERE
SELECT id FROM orders PREWHERE urgent

-- name: a hierarchy
-- refused: 1:23 START WITH is not planned: join the table with itself once for each step
SELECT id FROM orders START WITH id = 1 CONNECT BY id = id

-- name: sums of groups by WITH ROLLUP
-- refused: 1:62 WITH ROLLUP is not planned: write one query for each set of columns, and UNION ALL
SELECT customer, count(*) AS n FROM orders GROUP BY customer WITH ROLLUP

-- name: sums of groups by WITH TOTALS
-- refused: 1:62 WITH TOTALS is not planned: write one query for the totals, and UNION ALL
SELECT customer, count(*) AS n FROM orders GROUP BY customer WITH TOTALS

-- name: another time zone
-- refused: 1:15 AT TIME ZONE is not planned: times are in UTC; add an INTERVAL, or use to_char()
SELECT placed AT TIME ZONE 'America/New_York' AS t FROM orders

-- name: the first rows by TOP
-- refused: 1:8 TOP is not planned: number the rows with row_number(), and keep WHERE n <= 10
SELECT TOP 3 id FROM orders

-- name: the first rows by FETCH
-- refused: 1:23 FETCH FIRST is not planned: number the rows with row_number(), and keep WHERE n <= 10
SELECT id FROM orders FETCH FIRST 3 ROWS ONLY

-- name: an order of files
-- refused: 1:23 SORT BY is not planned: a stream has no order
SELECT id FROM orders SORT BY id

-- name: a distribution of rows
-- refused: 1:23 DISTRIBUTE BY is not planned: rows are brought together by the keys of joins and groups
SELECT id FROM orders DISTRIBUTE BY id

-- name: pivot
-- refused: 1:22 PIVOT is not planned: write an aggregate with FILTER (WHERE ...) for each column
SELECT * FROM orders PIVOT (sum(amount) FOR customer IN ('ann', 'bob'))

-- name: a result as a table
-- refused: 1:11 INTO stands in INSERT INTO, before the query
SELECT id INTO x FROM orders

-- name: a collation
-- refused: 1:17 COLLATE is not planned: compare lower(x)
SELECT customer COLLATE "C" AS x FROM orders

-- name: an asof join
-- refused: 1:27 ASOF JOIN is not planned: use std.asof_join in YAML, or join between times
SELECT o.id FROM orders o ASOF JOIN payments p MATCH_CONDITION (o.placed >= p.paid_at) ON o.customer = p.customer

-- name: a lateral view
-- refused: 1:23 LATERAL VIEW is not planned: write unnest() in SELECT
SELECT id FROM orders LATERAL VIEW explode(tags) t AS x

-- name: unnest with ordinality
-- refused: 1:41 JOIN UNNEST is not planned: write unnest() in SELECT
SELECT id, u.tag, u.o FROM orders CROSS JOIN UNNEST(tags) WITH ORDINALITY AS u(tag, o)

-- name: several columns in count distinct
-- refused: 1:8 count() of several columns is not planned: put them into one with struct()
SELECT count(DISTINCT w, v) AS n FROM words

-- name: nulls that are left out by a word
-- refused: 1:18 IGNORE NULLS of first_value() is not planned: FILTER (WHERE x IS NOT NULL)
SELECT customer, first_value(amount) IGNORE NULLS AS x FROM orders GROUP BY customer

-- name: a window over groups that change
-- refused: 1:107 windows need an event time: declare WATERMARK FOR a TIMESTAMP column in CREATE TABLE, or a column GENERATED ALWAYS AS (now()) for the time at which rows arrive
SELECT count(*) AS n FROM (SELECT customer, max(amount) AS m FROM orders GROUP BY customer) AS t GROUP BY tumble(INTERVAL '10 seconds')

-- name: a window over a left join
-- refused: 1:87 rows that change are in no window: group by the window first, and aggregate that
SELECT count(*) AS n FROM orders o LEFT JOIN payments p ON o.id = p.order_id GROUP BY tumble(INTERVAL '10 seconds')

-- name: two windows
-- refused: 1:74 GROUP BY has one window: group the rows of the first one in a query around it
SELECT count(*) AS n FROM orders GROUP BY tumble(INTERVAL '10 seconds'), hop(INTERVAL '5 seconds', INTERVAL '10 seconds')

-- name: not in a subquery
-- refused: 1:32 NOT IN (SELECT ...) depends on every NULL that may still come: write NOT EXISTS
SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM payments)

-- name: grouping sets
-- refused: 1:53 GROUPING SETS, ROLLUP and CUBE are not planned: write one query for each set, and UNION ALL
SELECT customer, count(*) AS n FROM orders GROUP BY GROUPING SETS ((customer), ())

-- name: distinct on
-- refused: 1:8 DISTINCT ON is not planned: write row_number() OVER (PARTITION BY ... ORDER BY ...) AS n, and WHERE n = 1 in a query around it
SELECT DISTINCT ON (customer) customer, id FROM orders

-- name: natural join
-- refused: 1:23 NATURAL JOIN depends on the names of all columns: write JOIN ... ON a.x = b.x
SELECT id FROM orders NATURAL JOIN customers

-- name: except all
-- refused: 1:21 EXCEPT ALL is not planned: write EXCEPT
SELECT w FROM words EXCEPT ALL SELECT v FROM words

-- name: intersect all
-- refused: 1:21 INTERSECT ALL is not planned: write INTERSECT
SELECT w FROM words INTERSECT ALL SELECT v FROM words

-- name: a column that is reserved
-- refused: 1:13 '_updating_meta' is a name of the engine's own: give the column another
SELECT n AS _updating_meta FROM numbers

-- name: a view that reads itself
-- refused: 1:13 the view 'loop' reads itself
CREATE VIEW loop AS SELECT a FROM loop;
SELECT a FROM loop

-- name: views that read each other
-- refused: 1:13 the view 'one' reads itself
CREATE VIEW one AS SELECT a FROM two;
CREATE VIEW two AS SELECT a FROM one;
SELECT a FROM one

-- name: rank without a limit
-- refused: 1:12 rank() over a stream changes with every row: keep the first rows with WHERE rank <= n right above it, or partition it by the window of the rows
SELECT id, rank() OVER (PARTITION BY customer ORDER BY amount) AS x FROM orders
