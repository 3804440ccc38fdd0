-- name: null is not equal
SELECT n FROM numbers WHERE a = b

-- name: null is not unequal
SELECT n FROM numbers WHERE a <> b

-- name: is null
SELECT n FROM numbers WHERE a IS NULL OR b IS NULL

-- name: is not null
SELECT n FROM numbers WHERE a IS NOT NULL AND b IS NOT NULL

-- name: equality with null gives null
SELECT n, a = NULL AS x FROM numbers

-- name: is distinct from
SELECT n FROM numbers WHERE a IS DISTINCT FROM b

-- name: is not distinct from
SELECT w.k, v FROM words w WHERE w IS NOT DISTINCT FROM v

-- name: is not distinct from null
SELECT n FROM numbers WHERE a IS NOT DISTINCT FROM NULL

-- name: and of three values
SELECT n, a > 0 AND b > 0 AS both_ FROM numbers

-- name: or of three values
SELECT n, a > 0 OR b > 0 AS either_ FROM numbers

-- name: not of three values
SELECT n, NOT (a > 0) AS no FROM numbers

-- name: is true
SELECT id, urgent IS TRUE AS t, urgent IS NOT TRUE AS nt FROM orders

-- name: is false
SELECT id, urgent IS FALSE AS f, urgent IS NOT FALSE AS nf FROM orders

-- name: is unknown
SELECT id, urgent IS UNKNOWN AS u, urgent IS NOT UNKNOWN AS nu FROM orders
-- duckdb:
SELECT id, urgent IS NULL AS u, urgent IS NOT NULL AS nu FROM orders

-- name: in a list
SELECT n FROM numbers WHERE a IN (1, 2, 7)

-- name: in a list with null
SELECT n, a IN (1, NULL) AS x FROM numbers

-- name: not in a list
SELECT n FROM numbers WHERE a NOT IN (1, 2, 7)

-- name: not in a list with null finds nothing that is true
SELECT n, a NOT IN (1, NULL) AS x FROM numbers

-- name: in a list of texts
SELECT w FROM words WHERE w IN ('a', '', ' ')

-- name: in a list of expressions
SELECT n FROM numbers WHERE a IN (b, b + 1, n)

-- name: between
SELECT n FROM numbers WHERE a BETWEEN -1 AND 2

-- name: between with null bounds
SELECT n, a BETWEEN b AND 10 AS x FROM numbers

-- name: not between
SELECT n FROM numbers WHERE a NOT BETWEEN b AND 7

-- name: coalesce
SELECT n, coalesce(a, b, 0) AS x FROM numbers

-- name: coalesce of texts
SELECT coalesce(w, v, 'none') AS x FROM words

-- name: nullif
SELECT n, nullif(a, 1) AS x, nullif(a, b) AS y FROM numbers

-- name: case of null
SELECT n, CASE a WHEN NULL THEN 'null' WHEN 1 THEN 'one' ELSE 'other' END AS x FROM numbers

-- name: case without else
SELECT n, CASE WHEN a > 0 THEN 'more' WHEN a < 0 THEN 'less' END AS x FROM numbers

-- name: case takes the first that is true
SELECT n, CASE WHEN a > -10 THEN 1 WHEN a > -5 THEN 2 ELSE 3 END AS x FROM numbers

-- name: case over a value
SELECT w, CASE w WHEN '' THEN 'empty' WHEN 'a' THEN 'letter' ELSE w END AS x FROM words

-- name: case of conditions that are null
SELECT n, CASE WHEN a > b THEN 'a' WHEN a <= b THEN 'b' ELSE 'unknown' END AS x FROM numbers

-- name: case of several types of numbers
SELECT n, CASE WHEN a > 0 THEN i WHEN a < 0 THEN d ELSE s END AS x FROM numbers

-- name: a case in a filter
SELECT n FROM numbers WHERE CASE WHEN a IS NULL THEN b > 0 ELSE a > 0 END

-- name: arithmetic with null
SELECT n, a + b AS p, a - b AS m, a * b AS t, -a AS neg FROM numbers

-- name: concatenation with null
SELECT w || v AS x FROM words

-- name: concat leaves nulls out
SELECT concat(w, '-', v) AS x FROM words

-- name: concat_ws leaves nulls out
SELECT concat_ws('-', w, v) AS x FROM words

-- name: empty texts are not null
SELECT k, w = '' AS x, w IS NULL AS y FROM words

-- name: greatest and least leave nulls out
SELECT n, greatest(a, b) AS g, least(a, b) AS l FROM numbers

-- name: nvl
SELECT n, nvl(a, 5) AS x FROM numbers
-- duckdb:
SELECT n, coalesce(a, 5) AS x FROM numbers

-- name: fields of a null struct
SELECT id, address['city'] AS city FROM orders

-- name: nulls count in groups
SELECT w, count(*) AS n FROM words GROUP BY w

-- name: count of null is nothing
SELECT k, count(w) AS w, count(v) AS v, count(*) AS n FROM words GROUP BY k

-- name: sum of nulls alone is null
SELECT n, sum(a) AS x FROM numbers WHERE a IS NULL GROUP BY n

-- name: not equal beside is null
SELECT n FROM numbers WHERE a <> 1 OR a IS NULL

-- name: a function of a case without ELSE
SELECT id FROM orders WHERE starts_with(CASE WHEN urgent THEN 'a' END, 'a')
-- duckdb:
SELECT id FROM orders WHERE urgent
