-- name: row numbers in a window
SELECT id, row_number() OVER (PARTITION BY window ORDER BY id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, row_number() OVER (PARTITION BY w ORDER BY id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: ranks in a window
SELECT id, rank() OVER (PARTITION BY window ORDER BY amount) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, rank() OVER (PARTITION BY w ORDER BY amount) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: dense ranks in a window
SELECT id, dense_rank() OVER (PARTITION BY window ORDER BY amount DESC) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, dense_rank() OVER (PARTITION BY w ORDER BY amount DESC) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: the order of nulls by default
SELECT id, row_number() OVER (PARTITION BY window ORDER BY amount DESC, id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, row_number() OVER (PARTITION BY w ORDER BY amount DESC, id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: nulls first
SELECT id, row_number() OVER (PARTITION BY window ORDER BY amount NULLS FIRST, id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, row_number() OVER (PARTITION BY w ORDER BY amount NULLS FIRST, id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: nulls last of a descending order
SELECT id, row_number() OVER (PARTITION BY window ORDER BY amount DESC NULLS LAST, id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, row_number() OVER (PARTITION BY w ORDER BY amount DESC NULLS LAST, id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: lag in a window
SELECT id, lag(amount) OVER (PARTITION BY window ORDER BY id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, lag(amount) OVER (PARTITION BY w ORDER BY id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: lead in a window
SELECT id, lead(amount, 2) OVER (PARTITION BY window ORDER BY id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, lead(amount, 2) OVER (PARTITION BY w ORDER BY id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: lag with a default
SELECT id, lag(amount, 1, 0) OVER (PARTITION BY window ORDER BY id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, lag(amount, 1, 0) OVER (PARTITION BY w ORDER BY id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: the first value in a window
SELECT id, first_value(id) OVER (PARTITION BY window ORDER BY amount, id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, first_value(id) OVER (PARTITION BY w ORDER BY amount, id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: the last value in a window
SELECT id, last_value(id) OVER (PARTITION BY window ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, last_value(id) OVER (PARTITION BY w ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: a running sum in a window
SELECT id, sum(amount) OVER (PARTITION BY window ORDER BY id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, sum(amount) OVER (PARTITION BY w ORDER BY id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: a sum over a window
SELECT id, sum(amount) OVER (PARTITION BY window ) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, sum(amount) OVER (PARTITION BY w ) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: a share of a window
SELECT id, amount * 100 / count(*) OVER (PARTITION BY window ) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, amount * 100 / count(*) OVER (PARTITION BY w ) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: a moving sum of rows
SELECT id, sum(amount) OVER (PARTITION BY window ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, sum(amount) OVER (PARTITION BY w ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: a mean over a window
SELECT id, avg(amount) OVER (PARTITION BY window ) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, avg(amount) OVER (PARTITION BY w ) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: a count over a range of peers
SELECT id, count(*) OVER (PARTITION BY window ORDER BY amount) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, count(*) OVER (PARTITION BY w ORDER BY amount) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: ntile in a window
SELECT id, ntile(3) OVER (PARTITION BY window ORDER BY id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, ntile(3) OVER (PARTITION BY w ORDER BY id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: percent_rank in a window
SELECT id, percent_rank() OVER (PARTITION BY window ORDER BY amount) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, percent_rank() OVER (PARTITION BY w ORDER BY amount) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: cume_dist in a window
SELECT id, cume_dist() OVER (PARTITION BY window ORDER BY amount) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, cume_dist() OVER (PARTITION BY w ORDER BY amount) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: nth_value in a window
SELECT id, nth_value(id, 2) OVER (PARTITION BY window ORDER BY id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, nth_value(id, 2) OVER (PARTITION BY w ORDER BY id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: two functions over a window
SELECT id, row_number() OVER (PARTITION BY window ORDER BY id) AS x, sum(amount) OVER (PARTITION BY window) AS y FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, row_number() OVER (PARTITION BY w ORDER BY id) AS x, sum(amount) OVER (PARTITION BY w) AS y FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: partitions of a window and a key
SELECT id, row_number() OVER (PARTITION BY window, customer ORDER BY id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, row_number() OVER (PARTITION BY w, customer ORDER BY id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: a named window
SELECT id, row_number() OVER v AS x, count(*) OVER v AS y FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t WINDOW v AS (PARTITION BY window ORDER BY id)
-- duckdb:
SELECT id, row_number() OVER v AS x, count(*) OVER v AS y FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) WINDOW v AS (PARTITION BY w ORDER BY id)

-- name: a function over a window in an expression
SELECT id, amount - min(amount) OVER (PARTITION BY window) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t
-- duckdb:
SELECT id, amount - min(amount) OVER (PARTITION BY w) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)

-- name: a filter above a function over a window
SELECT id, x FROM (SELECT id, lag(id) OVER (PARTITION BY window ORDER BY id) AS x FROM (SELECT customer, id, amount, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4) AS t) AS u WHERE x IS NULL
-- duckdb:
SELECT id, x FROM (SELECT id, lag(id) OVER (PARTITION BY w ORDER BY id) AS x FROM (SELECT customer, id, amount, time_bucket(INTERVAL '20 seconds', placed) AS w, count(*) AS n FROM orders GROUP BY 1, 2, 3, 4)) WHERE x IS NULL

-- name: the newest row of each key
SELECT customer, id FROM (SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY id DESC) AS place FROM orders) AS t WHERE place = 1

-- name: the three first rows of each key
SELECT customer, id, amount FROM (SELECT customer, id, amount, row_number() OVER (PARTITION BY customer ORDER BY amount, id) AS place FROM orders) AS t WHERE place <= 3

-- name: the three first rows with their places
SELECT customer, id, place FROM (SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders) AS t WHERE place <= 3

-- name: less than a number
SELECT customer, id FROM (SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders) AS t WHERE place < 3

-- name: a number on the other side
SELECT customer, id FROM (SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders) AS t WHERE 2 >= place

-- name: the first rows of all
SELECT id FROM (SELECT id, row_number() OVER (ORDER BY amount DESC NULLS LAST, id) AS place FROM orders) AS t WHERE place <= 5

-- name: the first rows and another condition
SELECT id FROM (SELECT id, urgent, row_number() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders) AS t WHERE place <= 2 AND urgent

-- name: ranks with ties of each key
-- refused: 1:55 rank() keeps rows that are equal, and how many is known at the end of 
SELECT customer, id, place FROM (SELECT customer, id, rank() OVER (PARTITION BY customer ORDER BY amount DESC) AS place FROM orders) AS t WHERE place <= 2

-- name: qualify
SELECT customer, id FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY id) = 1

-- name: the first rows of groups
SELECT customer, n FROM (SELECT customer, n, row_number() OVER (ORDER BY n DESC, customer) AS place FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS t) AS u WHERE place <= 3

-- name: groups of the first rows
SELECT count(*) AS n, sum(amount) AS s FROM (SELECT amount, row_number() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders) AS t WHERE place = 1

-- name: the second row alone
SELECT customer, id FROM (SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders) AS t WHERE place = 2

-- name: the first rows by an expression
SELECT customer, id FROM (SELECT customer, id, row_number() OVER (PARTITION BY upper(customer) ORDER BY abs(amount) DESC, id) AS place FROM orders) AS t WHERE place = 1

-- name: nulls in the order of the first rows
SELECT customer, id, amount FROM (SELECT customer, id, amount, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders) AS t WHERE place = 1

-- name: dense ranks of each key
-- refused: 1:55 dense_rank() over a stream changes with every row
SELECT customer, id, place FROM (SELECT customer, id, dense_rank() OVER (PARTITION BY customer ORDER BY amount DESC) AS place FROM orders) AS t WHERE place <= 2

-- name: lag without a window
SELECT payment, lag(paid) OVER (PARTITION BY customer ORDER BY paid_at, payment) AS x FROM payments

-- name: lead without a window
SELECT payment, lead(paid) OVER (PARTITION BY customer ORDER BY paid_at, payment) AS x FROM payments

-- name: the difference from the row before
SELECT payment, paid - lag(paid) OVER (PARTITION BY customer ORDER BY paid_at, payment) AS x FROM payments

-- name: rows some places before and behind with defaults
SELECT payment, lag(paid, 2, 0) OVER w AS x, lead(paid, 3, -1) OVER w AS y FROM payments WINDOW w AS (PARTITION BY customer ORDER BY paid_at, payment)

-- name: lag and lead of all rows
SELECT payment, lag(customer, 1, 'none') OVER (ORDER BY paid_at, payment) AS x, lead(paid, 1, NULL) OVER (ORDER BY paid_at, payment) AS y FROM payments

-- name: lag of different partitions
SELECT payment, lag(payment) OVER (PARTITION BY customer ORDER BY paid_at, payment) AS x, lag(payment) OVER (PARTITION BY paid ORDER BY paid_at, payment DESC) AS y FROM payments

-- name: lag of an expression by an expression
SELECT payment, lag(abs(paid) + 1) OVER (PARTITION BY upper(customer) ORDER BY paid_at, payment) AS x FROM payments

-- name: lag in a given order of nulls
SELECT payment, lag(payment) OVER (PARTITION BY customer ORDER BY paid_at, paid DESC NULLS LAST, payment) AS x FROM payments

-- name: a filter above lag
SELECT payment, x FROM (SELECT payment, paid, lag(paid) OVER (PARTITION BY customer ORDER BY paid_at, payment) AS x FROM payments) AS t WHERE paid > x OR x IS NULL

-- name: groups above lag
SELECT customer, count(*) AS n, sum(x) AS s FROM (SELECT customer, lag(paid) OVER (PARTITION BY customer ORDER BY paid_at, payment) AS x FROM payments) AS t GROUP BY customer

-- name: windows above lead
SELECT customer, tumble(INTERVAL '20 seconds') AS window, sum(x) AS s FROM (SELECT customer, paid_at, lead(paid) OVER (PARTITION BY customer ORDER BY paid_at, payment) AS x FROM payments) AS t GROUP BY 1, 2
-- duckdb:
SELECT customer, struct_pack("start" := w, "end" := w + INTERVAL '20 seconds') AS window, sum(x) AS s FROM (SELECT customer, time_bucket(INTERVAL '20 seconds', paid_at) AS w, lead(paid) OVER (PARTITION BY customer ORDER BY paid_at, payment) AS x FROM payments) GROUP BY 1, 2

-- name: the window before
SELECT customer, n, lag(n) OVER (PARTITION BY customer ORDER BY window.start) AS x FROM (SELECT customer, tumble(INTERVAL '20 seconds') AS window, count(*) AS n FROM payments GROUP BY 1, 2) AS t
-- duckdb:
SELECT customer, n, lag(n) OVER (PARTITION BY customer ORDER BY w) AS x FROM (SELECT customer, time_bucket(INTERVAL '20 seconds', paid_at) AS w, count(*) AS n FROM payments GROUP BY 1, 2)

-- name: lag in another order
-- refused: 1:17 lag() OVER a stream goes by event time: write ORDER BY paid_at
SELECT payment, lag(paid) OVER (PARTITION BY customer ORDER BY payment) AS x FROM payments

-- name: lag without an order
-- refused: 1:17 lag() OVER a stream goes by event time: write ORDER BY paid_at
SELECT payment, lag(paid) OVER (PARTITION BY customer) AS x FROM payments

-- name: lag backwards in time
-- refused: 1:17 lag() OVER a stream goes forward in time: write lead() with ORDER BY paid_at
SELECT payment, lag(paid) OVER (PARTITION BY customer ORDER BY paid_at DESC) AS x FROM payments

-- name: lag of no row
-- refused: 1:17 the offset of lag() OVER a stream is a number from 1 on
SELECT payment, lag(paid, 0) OVER (PARTITION BY customer ORDER BY paid_at) AS x FROM payments

-- name: lag with a column as its default
-- refused: 1:17 the default of lag() OVER a stream is a literal
SELECT payment, lag(paid, 1, payment) OVER (PARTITION BY customer ORDER BY paid_at) AS x FROM payments

-- name: lag of totals that change
-- refused: 1:18 lag() OVER needs rows that stay
SELECT customer, lag(n) OVER (ORDER BY customer) AS x FROM (SELECT customer, count(*) AS n FROM payments GROUP BY customer) AS t
