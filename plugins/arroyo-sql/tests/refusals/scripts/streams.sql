-- name: an order of a stream
-- refused: 1:21 a stream has no end, so it has no ORDER BY: rank its rows with row_number() OVER (... ORDER BY ...)
SELECT w FROM words ORDER BY w

-- name: an order by a number
-- refused: 1:21 a stream has no end, so it has no ORDER BY: rank its rows with row_number() OVER (... ORDER BY ...)
SELECT w FROM words ORDER BY 1

-- name: a limit
-- refused: 1:21 a stream has no end, so it has no LIMIT: number its rows with row_number() OVER (...), and keep WHERE n <= 10
SELECT w FROM words LIMIT 5

-- name: an offset
-- refused: 1:21 a stream has no end, so it has no LIMIT: number its rows with row_number() OVER (...), and keep WHERE n <= 10
SELECT w FROM words OFFSET 5

-- name: an order and a limit
-- refused: 1:40 a stream has no end, so it has no LIMIT: number its rows with row_number() OVER (...), and keep WHERE n <= 10
SELECT w, k FROM words ORDER BY k DESC LIMIT 3

-- name: a join without equality
-- refused: 1:27 a join of streams needs an equality of columns of both sides: ON a.x = b.y; every row would be kept and compared with all others
SELECT o.id FROM orders o JOIN payments p ON o.amount > p.paid

-- name: a cross join
-- refused: 1:31 a join of streams needs an equality of columns of both sides: ON a.x = b.y; every row would be kept and compared with all others
SELECT x.w FROM words x CROSS JOIN numbers y

-- name: a join by the list of tables without a condition
-- refused: 1:12 a join of streams needs an equality of columns of both sides: ON a.x = b.y; every row would be kept and compared with all others
SELECT x.w FROM words x, numbers y

-- name: a window over a table without event time
-- refused: 1:42 windows need an event time: declare WATERMARK FOR a TIMESTAMP column in CREATE TABLE, or a column GENERATED ALWAYS AS (now()) for the time at which rows arrive
SELECT count(*) AS n FROM words GROUP BY tumble(INTERVAL '10 seconds')

-- name: a window function that is not in GROUP BY
-- refused: 1:8 tumble() stands in GROUP BY, not among other expressions: group by it, and read the start and the end of what it gives
SELECT tumble(INTERVAL '10 seconds') AS win, id FROM orders

-- name: a window of months
-- refused: 1:43 the size of tumble() has a fixed length: write days or less, not months
SELECT count(*) AS n FROM orders GROUP BY tumble(INTERVAL '1 month')

-- name: a window of nothing
-- refused: 1:43 a window is longer than nothing
SELECT count(*) AS n FROM orders GROUP BY tumble(INTERVAL '0 seconds')

-- name: a slide that does not divide
-- refused: 1:43 the size of hop() must be a multiple of its slide
SELECT count(*) AS n FROM orders GROUP BY hop(INTERVAL '4 seconds', INTERVAL '10 seconds')

-- name: a window without arguments
-- refused: 1:43 tumble() is written tumble(INTERVAL '10 seconds')
SELECT count(*) AS n FROM orders GROUP BY tumble()

-- name: hop with one argument
-- refused: 1:43 hop() is written hop(INTERVAL '5 seconds', INTERVAL '10 seconds'): slide, then size
SELECT count(*) AS n FROM orders GROUP BY hop(INTERVAL '4 seconds')

-- name: a row number without a limit
-- refused: 1:12 row_number() over a stream changes with every row: keep the first rows with WHERE rank <= n right above it, or partition it by the window of the rows
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id) AS x FROM orders

-- name: a running sum without a window
-- refused: 1:12 sum() OVER needs all rows of its partition, and a stream has no end: partition it by the window of the rows, which GROUP BY tumble() or TABLE(TUMBLE(...)) gives
SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY id) AS x FROM orders

-- name: windows of other sizes joined
-- refused: 2:1 both sides of a join by window have the same window
SELECT a.n FROM (SELECT tumble(INTERVAL '10 seconds') AS win, count(*) AS n FROM orders GROUP BY 1) AS a
JOIN (SELECT tumble(INTERVAL '5 seconds') AS win, count(*) AS m FROM payments GROUP BY 1) AS b ON a.win = b.win

-- name: a recursive query
-- refused: 1:6 a recursive query never ends on a stream: write the steps out
WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t) SELECT x FROM t
