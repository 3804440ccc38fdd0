-- name: date_trunc
SELECT id, date_trunc('minute', placed) AS m, date_trunc('second', placed) AS s FROM orders

-- name: date_trunc to days before 1970
SELECT id, date_trunc('day', placed) AS d, date_trunc('month', placed) AS m FROM orders

-- name: extract
SELECT id, EXTRACT(YEAR FROM placed) AS y, EXTRACT(MONTH FROM placed) AS m, EXTRACT(DAY FROM placed) AS d FROM orders

-- name: extract hours and minutes
SELECT id, EXTRACT(HOUR FROM placed) AS h, EXTRACT(MINUTE FROM placed) AS m FROM orders

-- name: date_part
SELECT id, date_part('year', placed) AS y, date_part('hour', placed) AS h FROM orders

-- name: day of the week
SELECT customer, EXTRACT(DOW FROM born) AS d FROM customers

-- name: times and intervals
SELECT id, placed + INTERVAL '1 hour' AS later, placed - INTERVAL '90 seconds' AS sooner FROM orders

-- name: times and months
SELECT id, placed + INTERVAL '1 month' AS later FROM orders

-- name: intervals of several units
SELECT id, placed + INTERVAL '1 day 2 hours 3 minutes' AS later FROM orders

-- name: dates and intervals
SELECT customer, born + INTERVAL '1 day' AS x FROM customers
-- duckdb:
SELECT customer, CAST(born + INTERVAL '1 day' AS DATE) AS x FROM customers

-- name: a time as a date
SELECT id, CAST(placed AS DATE) AS d FROM orders

-- name: a date as a time
SELECT customer, CAST(born AS TIMESTAMP) AS t FROM customers

-- name: a text as a time
SELECT n, CAST('2026-03-04 05:06:07' AS TIMESTAMP) AS t FROM numbers

-- name: date_bin
SELECT id, date_bin(INTERVAL '10 seconds', placed) AS t FROM orders
-- duckdb:
SELECT id, time_bucket(INTERVAL '10 seconds', placed) AS t FROM orders

-- name: date_bin with an origin
SELECT id, date_bin(INTERVAL '10 seconds', placed, TIMESTAMP '2026-01-01 00:00:03') AS t FROM orders
-- duckdb:
SELECT id, time_bucket(INTERVAL '10 seconds', placed, TIMESTAMP '2026-01-01 00:00:03') AS t FROM orders

-- name: the difference of times compared with an interval
SELECT a.payment FROM payments a WHERE a.paid_at - TIMESTAMP '1970-01-01 00:00:00' > INTERVAL '10 seconds'

-- name: the smallest time
SELECT customer, min(placed) AS first, max(placed) AS last FROM orders GROUP BY customer

-- name: groups by minutes
SELECT date_trunc('minute', placed) AS m, count(*) AS n FROM orders GROUP BY date_trunc('minute', placed)

-- name: groups by a date
SELECT CAST(placed AS DATE) AS d, count(*) AS n, sum(amount) AS s FROM orders GROUP BY 1

-- name: times in a case
SELECT id, CASE WHEN urgent THEN placed ELSE placed + INTERVAL '1 minute' END AS due FROM orders

-- name: seconds since 1970
SELECT id, CAST(EXTRACT(EPOCH FROM date_trunc('second', placed)) AS BIGINT) AS s FROM orders

-- name: a time from seconds
SELECT n, to_timestamp_seconds(n) AS t FROM numbers
-- duckdb:
SELECT n, make_timestamp(n * 1000000) AS t FROM numbers

-- name: times compared with each other
SELECT id FROM orders WHERE placed = date_trunc('second', placed)

-- name: a date as a text
SELECT customer, CAST(born AS TEXT) AS x FROM customers

-- name: days between dates
SELECT customer, born - DATE '1970-01-01' AS x FROM customers

-- name: the event time of a row
SELECT id, row_time() AS t, row_time() + INTERVAL '1 second' AS u FROM orders WHERE row_time() > TIMESTAMP '1970-01-01'
-- duckdb:
SELECT id, placed AS t, placed + INTERVAL '1 second' AS u FROM orders WHERE placed > TIMESTAMP '1970-01-01'

-- name: the event time of a row whose column is not selected
SELECT id, row_time() AS t FROM (SELECT id FROM orders WHERE urgent) AS o
-- duckdb:
SELECT id, placed AS t FROM orders WHERE urgent

-- name: groups by event time
SELECT date_trunc('minute', row_time()) AS m, count(*) AS n, max(row_time()) AS t FROM payments GROUP BY 1
-- duckdb:
SELECT date_trunc('minute', paid_at) AS m, count(*) AS n, max(paid_at) AS t FROM payments GROUP BY 1

-- name: windows of event time under another name
SELECT count(*) AS n, min(t) AS t FROM (SELECT row_time() AS t, paid FROM payments) AS p GROUP BY tumble(INTERVAL '10 seconds')
-- duckdb:
SELECT count(*) AS n, min(paid_at) AS t FROM payments GROUP BY time_bucket(INTERVAL '10 seconds', paid_at)

-- name: the order of event time
SELECT payment, lag(paid) OVER (PARTITION BY customer ORDER BY row_time(), payment) AS x FROM payments
-- duckdb:
SELECT payment, lag(paid) OVER (PARTITION BY customer ORDER BY paid_at, payment) AS x FROM payments
