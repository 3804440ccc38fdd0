-- name: a query of values beside one of a table
-- refused: 1:37 a query of a stream reads a table: write FROM
SELECT w, substring(w FROM 2) FROM (SELECT 'a' AS w UNION ALL SELECT w FROM words)

-- name: a row is looked for among rows
-- refused: 1:32 a subquery in a condition has one column: write EXISTS (SELECT 1 FROM ... WHERE b.x = a.x AND ...)
SELECT id FROM orders WHERE id IN (SELECT order_id, paid FROM payments)

-- name: a comparison with all rows
-- refused: 1:39 a subquery of EXISTS and IN needs an equality with a column outside: b.y = a.x
SELECT id FROM orders WHERE amount >= ALL (SELECT paid FROM payments)

-- name: aggregates that differ by a cast alone
-- refused: 1:8 two sum() differ by a cast alone, and get one name: cast in a query of FROM, or the result
SELECT sum(a) AS s, sum(CAST(a AS DOUBLE)) AS d FROM numbers

-- name: a function that is called otherwise here
-- refused: 1:11 there is no function 'if': write CASE WHEN ... THEN ... ELSE ... END
SELECT w, IF(k > 1, 'a', 'b') AS s FROM words

-- name: a function of windows that is called otherwise here
-- refused: 1:8 there is no function 'tumble_start': write window.start of tumble(...) AS window
SELECT TUMBLE_START(placed, INTERVAL '1' MINUTE) AS s FROM orders GROUP BY TUMBLE(placed, INTERVAL '1' MINUTE)

-- name: a pattern of dates as Flink and Spark have it
-- refused: 1:28 date_format() has patterns such as '%Y-%m-%d' here, as to_char() has: letters alone mean themselves
SELECT date_format(placed, 'yyyy-MM-dd') AS s FROM orders
