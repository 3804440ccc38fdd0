-- name: tumbling windows
SELECT count(*) AS n FROM orders GROUP BY tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT count(*) AS n FROM orders GROUP BY time_bucket(INTERVAL '10 seconds', placed)

-- name: tumbling windows with their ends
SELECT window.start AS s, window.end AS e, n
FROM (SELECT tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1) AS t
-- duckdb:
SELECT time_bucket(INTERVAL '10 seconds', placed) AS s, time_bucket(INTERVAL '10 seconds', placed) + INTERVAL '10 seconds' AS e, count(*) AS n FROM orders GROUP BY ALL

-- name: tumbling windows with a key
SELECT customer, t.window.start AS s, n
FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY customer, window) AS t
-- duckdb:
SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS s, count(*) AS n FROM orders GROUP BY ALL

-- name: the window as a struct
SELECT tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1
-- duckdb:
SELECT {'start': time_bucket(INTERVAL '10 seconds', placed), 'end': time_bucket(INTERVAL '10 seconds', placed) + INTERVAL '10 seconds'} AS window, count(*) AS n FROM orders GROUP BY 1

-- name: all aggregates of a window
SELECT customer, count(*) AS n, count(amount) AS c, sum(amount) AS s, min(amount) AS lo, max(amount) AS hi, avg(weight) AS m
FROM orders GROUP BY customer, tumble(INTERVAL '20 seconds')
-- duckdb:
SELECT customer, count(*) AS n, count(amount) AS c, sum(amount) AS s, min(amount) AS lo, max(amount) AS hi, avg(weight) AS m
FROM orders GROUP BY customer, time_bucket(INTERVAL '20 seconds', placed)

-- name: distinct counts of a window
SELECT count(DISTINCT customer) AS n, count(DISTINCT amount) AS m FROM orders GROUP BY tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT count(DISTINCT customer) AS n, count(DISTINCT amount) AS m FROM orders GROUP BY time_bucket(INTERVAL '10 seconds', placed)

-- name: a filter of an aggregate of a window
SELECT count(*) FILTER (WHERE urgent) AS n, sum(amount) FILTER (WHERE amount > 0) AS s FROM orders GROUP BY tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT count(*) FILTER (WHERE urgent) AS n, sum(amount) FILTER (WHERE amount > 0) AS s FROM orders GROUP BY time_bucket(INTERVAL '10 seconds', placed)

-- name: having of a window
SELECT customer, count(*) AS n FROM orders GROUP BY customer, tumble(INTERVAL '20 seconds') HAVING count(*) > 2
-- duckdb:
SELECT customer, count(*) AS n FROM orders GROUP BY customer, time_bucket(INTERVAL '20 seconds', placed) HAVING count(*) > 2

-- name: a filter before a window
SELECT count(*) AS n, tumble(INTERVAL '10 seconds') AS "window" FROM orders WHERE amount > 1 GROUP BY 2
-- duckdb:
SELECT count(*) AS n, {'start': time_bucket(INTERVAL '10 seconds', placed), 'end': time_bucket(INTERVAL '10 seconds', placed) + INTERVAL '10 seconds'} AS "window" FROM orders WHERE amount > 1 GROUP BY 2

-- name: a filter by the window
SELECT window.start AS s, n FROM (SELECT tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1) AS t
WHERE window.start > TIMESTAMP '1970-01-01 00:00:00'
-- duckdb:
SELECT time_bucket(INTERVAL '10 seconds', placed) AS s, count(*) AS n FROM orders GROUP BY 1 HAVING s > TIMESTAMP '1970-01-01 00:00:00'

-- name: keys of a window that are expressions
SELECT upper(customer) AS c, amount > 5 AS large, count(*) AS n FROM orders GROUP BY 1, 2, tumble(INTERVAL '15 seconds')
-- duckdb:
SELECT upper(customer) AS c, amount > 5 AS large, count(*) AS n FROM orders GROUP BY 1, 2, time_bucket(INTERVAL '15 seconds', placed)

-- name: a window without aggregates
SELECT customer FROM orders GROUP BY customer, tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT customer FROM orders GROUP BY customer, time_bucket(INTERVAL '10 seconds', placed)

-- name: an interval by unit
SELECT count(*) AS n FROM orders GROUP BY tumble(INTERVAL '1' MINUTE)
-- duckdb:
SELECT count(*) AS n FROM orders GROUP BY time_bucket(INTERVAL '1 minute', placed)

-- name: hopping windows
SELECT count(*) AS n, sum(amount) AS s FROM orders GROUP BY hop(INTERVAL '5 seconds', INTERVAL '15 seconds')
-- duckdb:
SELECT count(*) AS n, sum(amount) AS s FROM (SELECT *, unnest(generate_series(time_bucket(INTERVAL '5 seconds', placed) - INTERVAL '10 seconds', time_bucket(INTERVAL '5 seconds', placed), INTERVAL '5 seconds')) AS ws FROM orders) GROUP BY ws

-- name: hopping windows with keys and ends
SELECT customer, window.end AS e, n
FROM (SELECT customer, hop(INTERVAL '5 seconds', INTERVAL '15 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS t
-- duckdb:
SELECT customer, ws + INTERVAL '15 seconds' AS e, count(*) AS n FROM (SELECT *, unnest(generate_series(time_bucket(INTERVAL '5 seconds', placed) - INTERVAL '10 seconds', time_bucket(INTERVAL '5 seconds', placed), INTERVAL '5 seconds')) AS ws FROM orders) GROUP BY 1, 2

-- name: hopping windows that do not overlap are tumbling
SELECT count(*) AS n FROM orders GROUP BY hop(INTERVAL '10 seconds', INTERVAL '10 seconds')
-- duckdb:
SELECT count(*) AS n FROM orders GROUP BY time_bucket(INTERVAL '10 seconds', placed)

-- name: distinct counts of hopping windows
SELECT count(DISTINCT customer) AS n, min(note) AS m FROM orders GROUP BY hop(INTERVAL '5 seconds', INTERVAL '15 seconds')
-- duckdb:
SELECT count(DISTINCT customer) AS n, min(note) AS m FROM (SELECT *, unnest(generate_series(time_bucket(INTERVAL '5 seconds', placed) - INTERVAL '10 seconds', time_bucket(INTERVAL '5 seconds', placed), INTERVAL '5 seconds')) AS ws FROM orders) GROUP BY ws

-- name: sessions
SELECT customer, count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer, session(INTERVAL '4 seconds')
-- duckdb:
WITH gaps AS (SELECT *, placed - lag(placed) OVER (PARTITION BY customer ORDER BY placed) AS gap FROM orders),
numbered AS (SELECT *, count(*) FILTER (WHERE gap >= INTERVAL 4 seconds) OVER (PARTITION BY customer ORDER BY placed) AS session FROM gaps)
SELECT customer, count(*) AS n, sum(amount) AS s FROM numbered GROUP BY customer, session

-- name: sessions with their ends
SELECT customer, window.start AS s, window.end AS e, n
FROM (SELECT customer, session(INTERVAL '4 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS t
-- duckdb:
WITH gaps AS (SELECT *, placed - lag(placed) OVER (PARTITION BY customer ORDER BY placed) AS gap FROM orders),
numbered AS (SELECT *, count(*) FILTER (WHERE gap >= INTERVAL 4 seconds) OVER (PARTITION BY customer ORDER BY placed) AS session FROM gaps)
SELECT customer, min(placed) AS s, max(placed) + INTERVAL 4 seconds AS e, count(*) AS n FROM numbered GROUP BY customer, session

-- name: sessions without keys
SELECT count(*) AS n, min(id) AS first FROM orders GROUP BY session(INTERVAL '1500 milliseconds')
-- duckdb:
WITH gaps AS (SELECT *, placed - lag(placed) OVER (ORDER BY placed) AS gap FROM orders),
numbered AS (SELECT *, count(*) FILTER (WHERE gap >= INTERVAL '1500 milliseconds') OVER (ORDER BY placed) AS session FROM gaps)
SELECT count(*) AS n, min(id) AS first FROM numbered GROUP BY session

-- name: a window of a window
SELECT window.start AS s, max(n) AS most FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS t GROUP BY window
-- duckdb:
SELECT s, max(n) AS most FROM (SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS s, count(*) AS n FROM orders GROUP BY 1, 2) GROUP BY s

-- name: counts over windows without a window
SELECT n, count(*) AS times FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer, tumble(INTERVAL '10 seconds')) AS t GROUP BY n
-- duckdb:
SELECT n, count(*) AS times FROM (SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS s, count(*) AS n FROM orders GROUP BY 1, 2) GROUP BY n

-- name: a larger window over windows
SELECT tumble(INTERVAL '20 seconds') AS window, sum(n) AS n, max(s) AS s
FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n, sum(amount) AS s FROM orders GROUP BY 1, 2) AS t GROUP BY 1
-- duckdb:
SELECT {'start': w, 'end': w + INTERVAL '20 seconds'} AS window, sum(n) AS n, max(s) AS s FROM (SELECT customer, time_bucket(INTERVAL '20 seconds', placed) AS w, time_bucket(INTERVAL '10 seconds', placed) AS b, count(*) AS n, sum(amount) AS s FROM orders GROUP BY 1, 2, 3) GROUP BY w

-- name: windows joined by join
SELECT a.customer, a.n, b.m
FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS a
JOIN (SELECT customer, tumble(INTERVAL '10 seconds') AS window, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.window = b.window
-- duckdb:
SELECT a.customer, a.n, b.m
FROM (SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2) AS a
JOIN (SELECT customer, time_bucket(INTERVAL '10 seconds', paid_at) AS w, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.w = b.w

-- name: windows joined by left join
SELECT a.customer, a.n, b.m
FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS a
LEFT JOIN (SELECT customer, tumble(INTERVAL '10 seconds') AS window, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.window = b.window
-- duckdb:
SELECT a.customer, a.n, b.m
FROM (SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2) AS a
LEFT JOIN (SELECT customer, time_bucket(INTERVAL '10 seconds', paid_at) AS w, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.w = b.w

-- name: windows joined by right join
SELECT a.customer, a.n, b.m
FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS a
RIGHT JOIN (SELECT customer, tumble(INTERVAL '10 seconds') AS window, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.window = b.window
-- duckdb:
SELECT a.customer, a.n, b.m
FROM (SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2) AS a
RIGHT JOIN (SELECT customer, time_bucket(INTERVAL '10 seconds', paid_at) AS w, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.w = b.w

-- name: windows joined by full join
SELECT a.customer, a.n, b.m
FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS a
FULL JOIN (SELECT customer, tumble(INTERVAL '10 seconds') AS window, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.window = b.window
-- duckdb:
SELECT a.customer, a.n, b.m
FROM (SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2) AS a
FULL JOIN (SELECT customer, time_bucket(INTERVAL '10 seconds', paid_at) AS w, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.w = b.w

-- name: windows joined by the window alone
SELECT a.n, b.m
FROM (SELECT tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1) AS a
JOIN (SELECT tumble(INTERVAL '10 seconds') AS window, sum(paid) AS m FROM payments GROUP BY 1) AS b ON a.window = b.window
-- duckdb:
SELECT a.n, b.m FROM (SELECT time_bucket(INTERVAL '10 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1) AS a JOIN (SELECT time_bucket(INTERVAL '10 seconds', paid_at) AS w, sum(paid) AS m FROM payments GROUP BY 1) AS b ON a.w = b.w

-- name: a residual condition of joined windows
SELECT a.customer, a.n, b.m
FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS a
JOIN (SELECT customer, tumble(INTERVAL '10 seconds') AS window, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.window = b.window AND a.n > b.m
-- duckdb:
SELECT a.customer, a.n, b.m
FROM (SELECT customer, time_bucket(INTERVAL '10 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2) AS a
JOIN (SELECT customer, time_bucket(INTERVAL '10 seconds', paid_at) AS w, sum(paid) AS m FROM payments GROUP BY 1, 2) AS b
ON a.customer = b.customer AND a.w = b.w AND a.n > b.m

-- name: the best of each window
SELECT customer, n FROM (
  SELECT customer, n, row_number() OVER (PARTITION BY window ORDER BY n DESC, customer) AS place
  FROM (SELECT customer, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS t
) AS u WHERE place <= 2
-- duckdb:
SELECT customer, n FROM (SELECT customer, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2)
QUALIFY row_number() OVER (PARTITION BY w ORDER BY n DESC, customer) <= 2

-- name: the best of each window with ties
SELECT customer, n, place FROM (
  SELECT customer, n, rank() OVER (PARTITION BY window ORDER BY n DESC) AS place
  FROM (SELECT customer, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS t
) AS u WHERE place <= 2
-- duckdb:
SELECT customer, n, rank() OVER (PARTITION BY w ORDER BY n DESC) AS place FROM (SELECT customer, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2)
QUALIFY place <= 2

-- name: the most of each window joined back
SELECT a.customer, a.n
FROM (SELECT customer, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS a
JOIN (SELECT window, max(n) AS most FROM (SELECT customer, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS x GROUP BY window) AS b
ON a.window = b.window AND a.n = b.most
-- duckdb:
SELECT customer, n FROM (SELECT customer, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2)
QUALIFY n = max(n) OVER (PARTITION BY w)

-- name: windows of a union
SELECT count(*) AS n FROM (SELECT customer, placed FROM orders UNION ALL SELECT customer, paid_at FROM payments) AS t GROUP BY tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT count(*) AS n FROM (SELECT customer, placed FROM orders UNION ALL SELECT customer, paid_at FROM payments) GROUP BY time_bucket(INTERVAL '10 seconds', placed)

-- name: windows of a join by time
SELECT count(*) AS n FROM (SELECT o.id, p.paid_at FROM orders o JOIN payments p ON o.customer = p.customer AND p.paid_at BETWEEN o.placed AND o.placed + INTERVAL '4 seconds') AS t

-- name: tumble as Flink writes it
SELECT window_start, window_end, customer, count(*) AS n
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, customer
-- duckdb:
SELECT time_bucket(INTERVAL '10 seconds', placed) AS window_start, time_bucket(INTERVAL '10 seconds', placed) + INTERVAL '10 seconds' AS window_end, customer, count(*) AS n FROM orders GROUP BY ALL

-- name: hop as Flink writes it
SELECT window_start, count(*) AS n
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(placed), INTERVAL '5' SECOND, INTERVAL '15' SECOND)) GROUP BY window_start, window_end
-- duckdb:
SELECT ws AS window_start, count(*) AS n FROM (SELECT *, unnest(generate_series(time_bucket(INTERVAL '5 seconds', placed) - INTERVAL '10 seconds', time_bucket(INTERVAL '5 seconds', placed), INTERVAL '5 seconds')) AS ws FROM orders) GROUP BY 1

-- name: windows of a common table expression
WITH t AS (SELECT customer, tumble(INTERVAL '10 seconds') AS window, sum(amount) AS s FROM orders GROUP BY 1, 2)
SELECT customer, window.end AS e, s FROM t WHERE s > 10
-- duckdb:
SELECT customer, time_bucket(INTERVAL '10 seconds', placed) + INTERVAL '10 seconds' AS e, sum(amount) AS s FROM orders GROUP BY 1, 2 HAVING sum(amount) > 10

-- name: a window and an updating sum of it
SELECT customer, sum(n) AS n FROM (SELECT customer, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2) AS t GROUP BY customer
-- duckdb:
SELECT customer, count(*) AS n FROM orders GROUP BY customer

-- name: a left join of windows without a right side keeps its rows
SELECT a.n, b.m
FROM (SELECT tumble(INTERVAL '5 seconds') AS window, count(*) AS n FROM orders GROUP BY 1) AS a
LEFT JOIN (SELECT tumble(INTERVAL '5 seconds') AS window, count(*) AS m FROM payments WHERE paid > 5 GROUP BY 1) AS b ON a.window = b.window
-- duckdb:
SELECT a.n, b.m FROM (SELECT time_bucket(INTERVAL '5 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1) AS a
LEFT JOIN (SELECT time_bucket(INTERVAL '5 seconds', paid_at) AS w, count(*) AS m FROM payments WHERE paid > 5 GROUP BY 1) AS b ON a.w = b.w

-- name: a window table function without table around it, and names in backquotes
SELECT `window_start` AS `s`, count(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '10' SECOND) AS `t` GROUP BY window_start, window_end
-- duckdb:
SELECT time_bucket(INTERVAL '10 seconds', placed) AS s, count(*) AS n FROM orders GROUP BY 1
