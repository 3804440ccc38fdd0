-- name: count of everything
SELECT count(*) AS n FROM orders

-- name: count of one
SELECT count(1) AS n FROM orders

-- name: all simple aggregates of a table
SELECT count(a) AS c, sum(a) AS s, min(a) AS lo, max(a) AS hi, avg(a) AS m FROM numbers

-- name: aggregates of groups
SELECT customer, count(*) AS n, sum(amount) AS s, min(amount) AS lo, max(amount) AS hi, avg(amount) AS m FROM orders GROUP BY customer

-- name: groups of two columns
SELECT customer, urgent, count(*) AS n FROM orders GROUP BY customer, urgent

-- name: groups by an expression
SELECT a % 3 AS r, count(*) AS n FROM numbers GROUP BY a % 3

-- name: groups by a number of a column
SELECT customer, urgent, sum(amount) AS s FROM orders GROUP BY 1, 2

-- name: groups by an alias
SELECT upper(customer) AS c, count(*) AS n FROM orders GROUP BY c

-- name: groups without aggregates
SELECT customer FROM orders GROUP BY customer

-- name: keys that are not selected
SELECT count(*) AS n FROM orders GROUP BY customer

-- name: keys after aggregates
SELECT sum(amount) AS s, customer FROM orders GROUP BY customer

-- name: an expression of aggregates
SELECT customer, sum(amount) * 2 + count(*) AS x FROM orders GROUP BY customer

-- name: an aggregate of an expression
SELECT customer, sum(amount * 2 + 1) AS x, max(abs(amount)) AS y FROM orders GROUP BY customer

-- name: an expression of keys
SELECT customer || '!' AS c, count(*) AS n FROM orders GROUP BY customer

-- name: one aggregate twice
SELECT customer, sum(amount) AS x, sum(amount) AS y, sum(amount) + 1 AS z FROM orders GROUP BY customer

-- name: a key twice
SELECT customer AS a, customer AS b, count(*) AS n FROM orders GROUP BY customer

-- name: sums of floating numbers
SELECT customer, sum(weight) AS s, avg(weight) AS m FROM orders GROUP BY customer

-- name: sums of decimals
SELECT customer, sum(price) AS s, min(price) AS lo, max(price) AS hi FROM orders GROUP BY customer

-- name: the mean of decimals
SELECT customer, round(CAST(avg(price) AS DOUBLE), 4) AS m FROM orders GROUP BY customer
-- duckdb:
SELECT customer, round(avg(price), 4) AS m FROM orders GROUP BY customer

-- name: sums of small numbers
SELECT n % 4 AS g, sum(s) AS s, sum(i) AS i FROM numbers GROUP BY n % 4

-- name: sums of booleans by case
SELECT customer, sum(CASE WHEN urgent THEN 1 ELSE 0 END) AS u FROM orders GROUP BY customer

-- name: a filter of an aggregate
SELECT customer, count(*) FILTER (WHERE amount > 5) AS n, sum(amount) FILTER (WHERE urgent) AS s FROM orders GROUP BY customer

-- name: a filter that is null is not true
SELECT count(*) FILTER (WHERE a > b) AS x, count(*) FILTER (WHERE NOT a > b) AS y, count(*) AS n FROM numbers

-- name: aggregates of a group that a filter leaves empty
SELECT customer, sum(amount) FILTER (WHERE amount > 1000) AS s, count(*) FILTER (WHERE amount > 1000) AS n FROM orders GROUP BY customer

-- name: count distinct
SELECT count(DISTINCT customer) AS n FROM orders

-- name: count distinct of groups
SELECT customer, count(DISTINCT amount) AS n, count(amount) AS m FROM orders GROUP BY customer

-- name: several distinct counts
SELECT k, count(DISTINCT w) AS w, count(DISTINCT v) AS v FROM words GROUP BY k

-- name: sum distinct
SELECT customer, sum(DISTINCT amount) AS s FROM orders GROUP BY customer

-- name: avg distinct
SELECT customer, avg(DISTINCT amount) AS m FROM orders GROUP BY customer

-- name: min distinct is min
SELECT customer, min(DISTINCT amount) AS m FROM orders GROUP BY customer

-- name: count distinct with a filter
SELECT customer, count(DISTINCT note) FILTER (WHERE urgent) AS n FROM orders GROUP BY customer

-- name: having
SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING count(*) > 9

-- name: having of what is not selected
SELECT customer FROM orders GROUP BY customer HAVING sum(amount) > 100

-- name: having of a key
SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING customer <> 'ann'

-- name: having without groups
SELECT count(*) AS n FROM orders HAVING count(*) > 1

-- name: having of null is not true
SELECT customer, sum(amount) AS s FROM orders WHERE amount IS NULL GROUP BY customer HAVING sum(amount) IS NULL

-- name: having and a filter
SELECT customer, max(amount) AS m FROM orders WHERE urgent GROUP BY customer HAVING max(amount) < 100

-- name: deviation and variance
SELECT customer, stddev(amount) AS a, stddev_pop(amount) AS b, var_samp(amount) AS c, var_pop(amount) AS d FROM orders GROUP BY customer

-- name: deviation of one row
SELECT n, stddev(a) AS x, var_pop(a) AS y FROM numbers GROUP BY n

-- name: correlation and covariance
SELECT urgent, corr(amount, weight) AS a, covar_pop(amount, weight) AS b, covar_samp(amount, weight) AS c FROM orders GROUP BY urgent

-- name: regression
SELECT urgent, regr_slope(weight, amount) AS a, regr_intercept(weight, amount) AS b, regr_count(weight, amount) AS c, regr_r2(weight, amount) AS d FROM orders GROUP BY urgent

-- name: regression, means
SELECT customer, regr_avgx(weight, amount) AS a, regr_avgy(weight, amount) AS b, regr_count(weight, amount) AS c FROM orders GROUP BY customer

-- name: regression, sums
SELECT customer, regr_sxx(weight, amount) AS a, regr_syy(weight, amount) AS b, regr_sxy(weight, amount) AS c FROM orders GROUP BY customer

-- name: regression in a window
SELECT regr_slope(weight, amount) AS a, regr_intercept(weight, amount) AS b, regr_r2(weight, amount) AS c FROM orders GROUP BY tumble(INTERVAL '30 seconds')
-- duckdb:
SELECT regr_slope(weight, amount) AS a, regr_intercept(weight, amount) AS b, regr_r2(weight, amount) AS c FROM orders GROUP BY time_bucket(INTERVAL '30 seconds', placed)

-- name: regression of one row
SELECT id, regr_count(weight, amount) AS a, regr_avgx(weight, amount) AS b, regr_sxx(weight, amount) AS c FROM orders GROUP BY id

-- name: regression with a filter
SELECT regr_sxy(d, a) FILTER (WHERE b > 0) AS x, regr_avgy(d, a) FILTER (WHERE b > 0) AS y FROM numbers WHERE d < 100

-- name: a percentile with weights
SELECT urgent, round(10 * approx_percentile_cont_with_weight(id, 1, 0.5) / median(id)) AS x FROM orders GROUP BY urgent
-- duckdb:
SELECT urgent, round(10 * quantile_cont(id, 0.5) / median(id)) AS x FROM orders GROUP BY urgent

-- name: a percentile of values that weigh more
SELECT round(approx_percentile_cont_with_weight(a, CASE WHEN a = 7 THEN 1000 ELSE 1 END, 0.5)) AS x, round(approx_percentile_cont_with_weight(a, CASE WHEN a = 50 THEN 1000 ELSE 1 END, 0.01)) AS y FROM numbers WHERE a IS NOT NULL
-- duckdb:
SELECT quantile_cont(x, 0.5) AS x, quantile_cont(y, 0.01) AS y FROM (SELECT unnest(CASE WHEN a = 7 THEN repeat([a], 1000) ELSE [a] END) AS x, NULL AS y FROM numbers WHERE a IS NOT NULL UNION ALL SELECT NULL, unnest(CASE WHEN a = 50 THEN repeat([a], 1000) ELSE [a] END) FROM numbers WHERE a IS NOT NULL)

-- name: bool_and and bool_or
SELECT customer, bool_and(urgent) AS a, bool_or(urgent) AS b FROM orders GROUP BY customer

-- name: aggregates of bits
SELECT customer, bit_and(amount) AS a, bit_or(amount) AS b, bit_xor(amount) AS c FROM orders GROUP BY customer

-- name: median
SELECT customer, median(weight) AS m FROM orders GROUP BY customer

-- name: the median of whole numbers
SELECT customer, median(CAST(amount AS DOUBLE)) AS m FROM orders GROUP BY customer

-- name: array_agg with an order
SELECT customer, array_agg(id ORDER BY id) AS x FROM orders GROUP BY customer

-- name: array_agg with another order
SELECT customer, array_agg(id ORDER BY amount DESC, id) AS x FROM orders GROUP BY customer

-- name: string_agg with an order
SELECT k, string_agg(w, ',' ORDER BY w) AS x FROM words GROUP BY k

-- name: first_value with an order
SELECT customer, first_value(id ORDER BY placed, id) AS x, last_value(id ORDER BY placed, id) AS y FROM orders GROUP BY customer
-- duckdb:
SELECT customer, arg_min(id, (placed, id)) AS x, arg_max(id, (placed, id)) AS y FROM orders GROUP BY customer

-- name: percentile
SELECT customer, percentile_cont(weight, 0.25) AS x FROM orders GROUP BY customer
-- duckdb:
SELECT customer, quantile_cont(weight, 0.25) AS x FROM orders GROUP BY customer

-- name: percentile within group
SELECT customer, percentile_cont(0.5) WITHIN GROUP (ORDER BY weight) AS x FROM orders GROUP BY customer

-- name: min and max of texts
SELECT k, min(w) AS a, max(w) AS b FROM words GROUP BY k

-- name: min and max of times and dates
SELECT region, min(born) AS a, max(born) AS b FROM customers GROUP BY region

-- name: min and max of booleans
SELECT customer, min(urgent) AS a, max(urgent) AS b FROM orders GROUP BY customer

-- name: an aggregate of nothing that is left
SELECT count(*) AS n, sum(amount) AS s FROM orders WHERE FALSE

-- name: an aggregate over rows that a filter removes
SELECT count(*) AS n, max(a) AS m FROM numbers WHERE a > 1000

-- name: groups of rows that a filter removes
SELECT count(*) AS n FROM (SELECT a, count(*) AS c FROM numbers WHERE a > 7 GROUP BY a) AS t

-- name: an aggregate of aggregates
SELECT max(n) AS most, count(*) AS groups FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS t

-- name: groups of groups
SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS t GROUP BY n

-- name: a filter of aggregates
SELECT * FROM (SELECT customer, sum(amount) AS s FROM orders GROUP BY customer) AS t WHERE s > 50

-- name: a case in groups
SELECT CASE WHEN amount > 5 THEN 'large' WHEN amount <= 5 THEN 'small' END AS size, count(*) AS n FROM orders GROUP BY CASE WHEN amount > 5 THEN 'large' WHEN amount <= 5 THEN 'small' END

-- name: groups by a boolean expression
SELECT amount > 5 AS large, count(*) AS n FROM orders GROUP BY amount > 5

-- name: groups by a floating number
SELECT weight, count(*) AS n FROM orders GROUP BY weight

-- name: groups by a decimal
SELECT price, count(*) AS n FROM orders GROUP BY price

-- name: groups by a time
SELECT placed, count(*) AS n FROM orders GROUP BY placed

-- name: groups by a literal
SELECT 'all' AS what, count(*) AS n FROM orders GROUP BY 'all'

-- name: grouping sets
-- refused: 1:61 GROUPING SETS, ROLLUP and CUBE are not planned
SELECT customer, urgent, count(*) AS n FROM orders GROUP BY GROUPING SETS ((customer), (urgent), ())

-- name: rollup
-- refused: 1:61 GROUPING SETS, ROLLUP and CUBE are not planned
SELECT customer, urgent, count(*) AS n FROM orders GROUP BY ROLLUP (customer, urgent)

-- name: cube
-- refused: 1:64 GROUPING SETS, ROLLUP and CUBE are not planned
SELECT customer, urgent, sum(amount) AS s FROM orders GROUP BY CUBE (customer, urgent)

-- name: distinct aggregates beside plain ones
SELECT count(*) AS n, count(DISTINCT customer) AS c, sum(amount) AS s FROM orders

-- name: count of several columns
SELECT count(DISTINCT w) AS a, count(w) AS b, count(*) AS c FROM words

-- name: results named like columns
SELECT customer, sum(amount) AS amount, min(id) AS id FROM orders GROUP BY customer

-- name: results with odd names
SELECT customer, count(*) AS "Rows", sum(amount) AS "_rows" FROM orders GROUP BY customer

-- name: a ratio of aggregates
SELECT customer, sum(amount) / count(*) AS x, CAST(count(urgent) AS DOUBLE) / count(*) AS y FROM orders GROUP BY customer

-- name: aggregates in a case
SELECT customer, CASE WHEN count(*) > 9 THEN 'many' ELSE 'few' END AS x FROM orders GROUP BY customer

-- name: coalesce of an aggregate
SELECT customer, coalesce(sum(amount), 0) AS x FROM orders GROUP BY customer

-- name: any value of a group of one
-- refused: 1:11 there is no aggregate any_value() of streams
SELECT n, any_value(a) AS x FROM numbers GROUP BY n
-- duckdb:
SELECT n, first(a) AS x FROM numbers GROUP BY n

-- name: percentiles within a group
SELECT customer, percentile_cont(0.25) WITHIN GROUP (ORDER BY amount) AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY weight) AS w FROM orders GROUP BY customer

-- name: percentiles within a group of something computed
SELECT customer, percentile_cont(0.75) WITHIN GROUP (ORDER BY amount * 2) AS a FROM orders GROUP BY customer
