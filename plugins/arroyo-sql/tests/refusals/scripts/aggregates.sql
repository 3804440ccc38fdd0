-- name: an aggregate that streams do not have
-- refused: 1:8 there is no aggregate nth_value() of streams: there are approx_distinct, approx_median, approx_percentile_cont, approx_percentile_cont_with_weight, array_agg, avg, bit_and, bit_or, bit_xor, bool_and, bool_or, corr, count, covar, covar_pop, covar_samp, first_value, last_value, max, mean, median, min, percentile_cont, quantile_cont, regr_avgx, regr_avgy, regr_count, regr_intercept, regr_r2, regr_slope, regr_sxx, regr_sxy, regr_syy, stddev, stddev_pop, stddev_samp, string_agg, sum, var, var_pop, var_population, var_samp, var_sample
SELECT nth_value(amount, 2) AS x FROM orders

-- name: distinct values of two columns
-- refused: 1:18 corr(DISTINCT ...) is not planned: aggregate a SELECT DISTINCT
SELECT customer, corr(DISTINCT amount, weight) AS m FROM orders GROUP BY customer

-- name: a percentile that is a column
-- refused: 1:8 approx_percentile_cont() takes columns, and a constant from 0 to 1 as the last argument
SELECT approx_percentile_cont(weight, weight) AS x FROM orders

-- name: a separator that is a column
-- refused: 1:8 string_agg() takes a column and a constant text between its values
SELECT string_agg(note, customer) AS x FROM orders

-- name: a percentile from above
-- refused: 1:8 percentile_cont() is of one column in ascending order: take 1 less the percentile
SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY weight DESC) AS x FROM orders

-- name: an order of distinct values by others
-- refused: 1:27 distinct values can be ordered by nothing but themselves: 'id'
SELECT array_agg(DISTINCT id ORDER BY amount) AS x FROM orders

-- name: the largest list
-- refused: 1:12 max takes a column of values with an order; column 'tags' is list<item: string>
SELECT max(tags) AS m FROM orders

-- name: a condition without columns above a total
-- refused: 1:55 a condition that reads no column is not planned above an aggregate without GROUP BY: leave it out, or compare a column
SELECT n FROM (SELECT count(*) AS n FROM orders) AS t WHERE random() > 2

-- name: an order of a list by WITHIN GROUP
-- refused: 1:22 WITHIN GROUP is of percentile_cont() alone: write array_agg(x ORDER BY y)
SELECT array_agg(id) WITHIN GROUP (ORDER BY id) AS x FROM orders

-- name: no columns to group by
-- refused: 1:38 () has no columns: leave GROUP BY out for one group of all rows
SELECT 'a' AS x FROM orders GROUP BY ()

-- name: a group that the query does not have
-- refused: 1:44 SELECT has no column 5: write one of 1 to 2, or an expression
SELECT customer, count(*) AS n FROM orders GROUP BY 5

-- name: the size of a window that is computed
-- refused: 1:57 there is no * of BIGINT and INTERVAL: add and subtract intervals, or compute with CAST(x AS BIGINT)
SELECT count(*) AS n FROM orders GROUP BY tumble(amount * INTERVAL '1 second')

-- name: a window function in a filter
-- refused: 1:42 a window function cannot be computed here: a window function stands in SELECT: filter it with QUALIFY, or in a query around it
SELECT id FROM orders WHERE row_number() OVER (ORDER BY id) = 1

-- name: a sum of a list
-- refused: 1:8 avg() does not take TEXT[]: CAST it
SELECT avg(tags) AS x FROM orders

-- name: a sum within a sum
-- refused: 1:8 an aggregate of an aggregate is not planned: aggregate a query in FROM once more
SELECT sum(count(*)) AS x FROM orders

-- name: rows of lists once
-- refused: 1:8 lists and maps cannot be compared row by row: compare their elements, or array_to_string(x, ',')
SELECT DISTINCT tags FROM orders
