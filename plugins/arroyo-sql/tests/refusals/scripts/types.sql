-- name: a sum of texts
-- refused: 1:8 sum() does not take TEXT: CAST it
SELECT sum(w) FROM words

-- name: an unknown type of a column
-- refused: 1:19 there is no type 'BIGNUMBER'
CREATE TABLE t (a BIGNUMBER)

-- name: an unknown type in a cast
-- refused: 1:18 there is no type BIGNUMBER: write BIGINT, DOUBLE, DECIMAL(10, 2), TEXT, BOOLEAN, TIMESTAMP, or another one
SELECT CAST(a AS BIGNUMBER) FROM numbers

-- name: a decimal of too many digits
-- refused: 1:27 90 is too large here: at most 38
CREATE TABLE t (a DECIMAL(90, 2))

-- name: a union of other numbers of columns
-- refused: 1:24 UNION needs as many columns on both sides: write CAST(NULL AS TYPE) where one side has none
SELECT w, k FROM words UNION ALL SELECT n FROM numbers

-- name: a union of types that do not go together
-- refused: 1:25 UNION of TEXT[] and BIGINT in the column 'n': CAST one of them
SELECT tags FROM orders UNION ALL SELECT n FROM numbers

-- name: a column that is not in the groups
-- refused: 1:18 the column 'amount' is neither in GROUP BY nor in an aggregate
SELECT customer, amount, count(*) AS n FROM orders GROUP BY customer

-- name: an aggregate in a filter
-- refused: 1:29 WHERE stands before the groups: write the condition of an aggregate in HAVING, behind GROUP BY
SELECT customer FROM orders WHERE count(*) > 1 GROUP BY customer
