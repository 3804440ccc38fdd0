-- name: rows before those that change
-- refused: 1:21 lag() OVER needs rows that stay, and these change: read them before they are aggregated or joined, or partition it by the window of the rows
SELECT customer, n, lag(n) OVER (ORDER BY n) AS x FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS t

-- name: rows before without event time
-- refused: 1:11 lag() OVER a stream goes by event time, and the rows have none: declare WATERMARK FOR a column of the table, and keep that column
SELECT n, lag(a) OVER (ORDER BY n) AS x FROM numbers

-- name: rows before in another order
-- refused: 1:12 lag() OVER a stream goes by event time: write ORDER BY placed, or partition it by the window of the rows
SELECT id, lag(id) OVER (ORDER BY id) AS x FROM orders

-- name: rows before in the order of time from its end
-- refused: 1:12 lag() OVER a stream goes forward in time: write lead() with ORDER BY placed, without DESC
SELECT id, lag(id) OVER (ORDER BY placed DESC) AS x FROM orders

-- name: a default that is a column
-- refused: 1:12 the default of lag() OVER a stream is a literal: use coalesce() above it
SELECT id, lag(id, 1, amount) OVER (ORDER BY placed) AS x FROM orders

-- name: an offset below zero
-- refused: 1:12 the offset of lag() OVER a stream is a number from 1 on
SELECT id, lag(id, -1) OVER (ORDER BY placed) AS x FROM orders

-- name: a filter of rows before
-- refused: 1:12 DISTINCT, FILTER and IGNORE NULLS of lag() OVER are not planned: filter the rows before
SELECT id, lag(amount) IGNORE NULLS OVER (ORDER BY placed) AS x FROM orders

-- name: a filter of a sum over rows
-- refused: 1:12 DISTINCT, FILTER and IGNORE NULLS of sum() OVER are not planned: filter the rows before
SELECT id, sum(amount) FILTER (WHERE urgent) OVER (PARTITION BY w) AS x FROM (SELECT id, amount, urgent, tumble(INTERVAL '20 seconds') AS w FROM orders GROUP BY 1, 2, 3, 4) AS t

-- name: a frame of time
-- refused: 1:67 the frame of sum() OVER is not planned: count ROWS, or leave the frame out
SELECT id, sum(amount) OVER (PARTITION BY w ORDER BY placed RANGE BETWEEN INTERVAL '5 seconds' PRECEDING AND CURRENT ROW) AS x FROM (SELECT id, amount, placed, tumble(INTERVAL '20 seconds') AS w FROM orders GROUP BY 1, 2, 3, 4) AS t

-- name: first rows without an order
-- refused: 1:28 row_number() that bounds rows needs an ORDER BY
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY customer) AS n FROM orders) AS t WHERE n <= 2

-- name: first rows and those that are equal
-- refused: 1:28 rank() keeps rows that are equal, and how many is known at the end of a window only: use row_number(), or partition by the window of the rows
SELECT id FROM (SELECT id, rank() OVER (PARTITION BY customer ORDER BY amount) AS n FROM orders) AS t WHERE n <= 2

-- name: the number of each row
-- refused: 1:12 row_number() over a stream changes with every row: keep the first rows with WHERE rank <= n right above it, or partition it by the window of the rows
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount) AS n FROM orders

-- name: a sum over all rows
-- refused: 1:12 sum() OVER needs all rows of its partition, and a stream has no end: partition it by the window of the rows, which GROUP BY tumble() or TABLE(TUMBLE(...)) gives
SELECT id, sum(amount) OVER (PARTITION BY customer) AS n FROM orders

-- name: a window that is not declared
-- refused: 1:25 there is no window 'w': write WINDOW w AS (PARTITION BY ... ORDER BY ...) behind the conditions
SELECT id, sum(id) OVER w AS x FROM orders

-- name: another column than event time
-- refused: 1:79 DESCRIPTOR is of the event time of 'orders', which is 'placed'
SELECT window_start, count(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(id), INTERVAL '10' SECOND)) GROUP BY window_start, window_end

-- name: windows without event time
-- refused: 1:80 DESCRIPTOR is of the event time of 'numbers', which is none: declare WATERMARK FOR a column
SELECT window_start, count(*) AS n FROM TABLE(TUMBLE(TABLE numbers, DESCRIPTOR(n), INTERVAL '10' SECOND)) GROUP BY window_start, window_end

-- name: the time of rows that have none
-- refused: 1:11 row_time() is the event time, and the rows have none: declare WATERMARK FOR a column of the table, and keep that column
SELECT n, row_time() AS t FROM numbers

-- name: rows of sessions
-- refused: 1:36 rows get their session from all rows of a key: group by window_start and window_end
SELECT id, window_start FROM TABLE(SESSION(TABLE orders, DESCRIPTOR(placed), INTERVAL '10' SECOND))

-- name: a window in a filter
-- refused: 1:34 tumble(), hop() and session() stand in GROUP BY, not in conditions: group by them first
SELECT count(*) AS n FROM orders WHERE tumble(INTERVAL '5 seconds').start > TIMESTAMP '1970-01-01'

-- name: other functions of FROM
-- refused: 1:15 only TUMBLE, HOP and SESSION are functions of FROM: write unnest() of a list in SELECT, or a table WITH (connector = 'impulse') for numbers
SELECT x FROM generate_series(1, 3) AS t(x)

-- name: functions of FROM that are not there
-- refused: 1:32 there is no table function 'flatten': write a table, or unnest() in SELECT
SELECT id FROM orders, LATERAL FLATTEN(tags)
