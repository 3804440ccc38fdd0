-- name: whole numbers divide to whole numbers
SELECT n, a / b AS x FROM numbers

-- name: remainder has the sign of the dividend
SELECT n, a % b AS x FROM numbers

-- name: floating division
SELECT n, d / 2 AS x, a / 2.0 AS y FROM numbers

-- name: numbers of several sizes
SELECT n, i + a AS x, s + i AS y, s * 1 AS z FROM numbers WHERE abs(CAST(i AS BIGINT)) < 1000 OR i IS NULL

-- name: whole and floating numbers
SELECT n, a + d AS x, i * d AS y FROM numbers

-- name: precedence
SELECT n, 1 + a * 2 - b AS x, (1 + a) * (2 - b) AS y FROM numbers

-- name: negation
SELECT n, - (a - b) AS x, -d AS y FROM numbers

-- name: abs and sign
SELECT n, abs(a) AS x, abs(d) AS y FROM numbers

-- name: round
SELECT n, round(d) AS x FROM numbers

-- name: round to digits
SELECT n, round(d / 3, 2) AS x FROM numbers

-- name: floor and ceil
SELECT n, floor(d) AS x, ceil(d) AS y FROM numbers

-- name: trunc
SELECT n, trunc(d) AS x FROM numbers

-- name: power and square root
SELECT n, power(b, 2) AS x, sqrt(abs(a)) AS y FROM numbers

-- name: exponents and logarithms
SELECT n, exp(b) AS x, ln(abs(b)) AS y, log10(abs(b)) AS z FROM numbers

-- name: trigonometry
SELECT n, sin(b) AS x, cos(b) AS y, atan2(b, 2) AS z FROM numbers

-- name: bits
SELECT n, a & 3 AS x, a | 8 AS y, a << 2 AS z, n >> 1 AS u FROM numbers WHERE a >= 0

-- name: exclusive or of bits
SELECT n, a ^ n AS x FROM numbers
-- duckdb:
SELECT n, xor(a, n) AS x FROM numbers

-- name: casts between sizes
SELECT n, CAST(s AS BIGINT) AS x, CAST(a AS SMALLINT) AS y, CAST(b AS DOUBLE) AS z FROM numbers

-- name: a cast by colons
SELECT n, a::INT AS x, n::TEXT AS y FROM numbers

-- name: a cast to text
SELECT n, CAST(a AS TEXT) AS x, CAST(n > 5 AS TEXT) AS y FROM numbers

-- name: a cast of whole text to a number
SELECT CAST(CAST(a AS TEXT) AS BIGINT) AS x FROM numbers

-- name: try_cast of texts
SELECT w, TRY_CAST(w AS BIGINT) AS x FROM words WHERE w <> '1.5'

-- name: try_cast to a floating number
SELECT w, TRY_CAST(w AS DOUBLE) AS x FROM words

-- name: a cast of a text that is not a number
-- fails: cannot cast
SELECT CAST(w AS BIGINT) AS x FROM words

-- name: a cast of booleans to numbers
SELECT id, CAST(urgent AS INT) AS x FROM orders

-- name: a cast of a floating number cuts digits off
SELECT n, CAST(d AS BIGINT) AS x FROM numbers
-- duckdb:
SELECT n, CAST(trunc(d) AS BIGINT) AS x FROM numbers

-- name: a cast that does not fit is null with try_cast
SELECT n, TRY_CAST(i AS SMALLINT) AS x FROM numbers

-- name: division by zero
-- fails: divide by zero
SELECT n, b / a AS x FROM numbers

-- name: decimals are exact
SELECT id, price + 0.01 AS x, price - 1 AS y, price * 2 AS z FROM orders

-- name: comparison of decimals with numbers
SELECT id FROM orders WHERE price = 9.99 OR price < 0

-- name: a cast to a decimal
SELECT n, CAST(d AS DECIMAL(20, 2)) AS x, CAST(a AS DECIMAL(10, 1)) AS y FROM numbers

-- name: a decimal as a text
SELECT id, CAST(price AS TEXT) AS x FROM orders

-- name: a decimal as a floating number
SELECT id, CAST(price AS DOUBLE) / 3 AS x FROM orders

-- name: comparison of sizes
SELECT n FROM numbers WHERE s < i AND i < a

-- name: comparison of whole with floating numbers
SELECT n FROM numbers WHERE a > d

-- name: large numbers
SELECT n, 9223372036854775807 - n AS x, CAST(i AS BIGINT) * 4 AS y FROM numbers

-- name: modulo of floating numbers
SELECT n, d % 2 AS x FROM numbers WHERE d < 1000

-- name: greatest of three
SELECT n, greatest(a, b, 0) AS x, least(a, b, 0) AS y FROM numbers

-- name: even numbers
SELECT n FROM numbers WHERE n % 2 = 0 AND a % 2 = 0

-- name: comparisons as columns
SELECT n, a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt FROM numbers

-- name: hexadecimal
SELECT n, to_hex(n) AS x FROM numbers
-- duckdb:
SELECT n, lower(to_hex(n)) AS x FROM numbers

-- name: factorial and greatest divisor
SELECT n, gcd(a, b) AS g FROM numbers
