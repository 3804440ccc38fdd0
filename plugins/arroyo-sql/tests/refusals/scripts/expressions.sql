-- name: NULL without a type
-- refused: 1:8 NULL has no type here: write CAST(NULL AS TEXT), or another type
SELECT NULL AS x FROM orders

-- name: a letter that escapes in a column
-- refused: 1:48 ESCAPE is planned for LIKE and a constant: double the letter in a function
SELECT id FROM orders WHERE note LIKE customer ESCAPE '!'

-- name: a map that is constant
-- refused: 1:8 a constant of type map<string, int64> cannot be written here: compute it in a function
SELECT MAP {'a': 1} AS i FROM orders

-- name: a cast to a struct
-- refused: 1:8 a cast to STRUCT<a VARCHAR> cannot be computed here: cast the parts of the value
SELECT CAST(address AS STRUCT<a TEXT>) AS x FROM orders

-- name: a cast of a list
-- refused: 1:8 TEXT[] cannot be cast to INT: cast one of its elements, x[1]
SELECT CAST(tags AS INT) AS x FROM orders

-- name: a cast of a struct
-- refused: 1:8 STRUCT cannot be cast to TEXT: cast one of its fields, x.name
SELECT CAST(address AS TEXT) AS x FROM orders

-- name: a type that is not there
-- refused: 1:19 there is no type MONEY: write BIGINT, DOUBLE, DECIMAL(10, 2), TEXT, BOOLEAN, TIMESTAMP, or another one
SELECT CAST(id AS MONEY) FROM orders

-- name: two lists as rows
-- refused: 1:8 a SELECT has one unnest(): unnest the other list in a query around it
SELECT unnest(tags) AS a, unnest([id]) AS b FROM orders

-- name: the fields of a struct as rows
-- refused: 1:8 unnest() takes one list: read the fields of a struct by their names
SELECT unnest(address) FROM orders

-- name: elements in FROM
-- refused: 1:35 unnest() stands in SELECT: SELECT x, unnest(list) AS y FROM t
SELECT o.id, t.tag FROM orders o, unnest(o.tags) AS t(tag)

-- name: a name of the engine
-- refused: 1:14 '_updating_meta' is a name of the engine's own: give the column another
SELECT id AS _updating_meta FROM orders

-- name: two columns of one name
-- refused: 1:14 two columns are called 'x': give one another name with AS
SELECT id AS x, amount AS x FROM orders

-- name: a union of other columns
-- refused: 1:33 UNION needs as many columns on both sides: write CAST(NULL AS TYPE) where one side has none
SELECT id, customer FROM orders UNION ALL SELECT id FROM orders

-- name: a union of other types
-- refused: 1:27 UNION of BOOLEAN and TIMESTAMP in the column 'placed': CAST one of them
SELECT urgent FROM orders UNION ALL SELECT placed FROM orders

-- name: a case of other types
-- refused: 1:8 CASE gives TEXT[] and BIGINT: CAST one of them
SELECT CASE WHEN urgent THEN tags ELSE id END AS x FROM orders

-- name: a case that compares other types
-- refused: 1:8 CASE compares values of types that do not go together: CAST them
SELECT CASE tags WHEN id THEN 1 END AS x FROM orders

-- name: one of several values of other types
-- refused: 1:8 coalesce() gets values of types that do not go together: CAST them to one type
SELECT coalesce(tags, id) AS x FROM orders

-- name: a comparison of other types
-- refused: 1:34 TEXT[] and BIGINT cannot be compared: CAST one of them
SELECT id FROM orders WHERE tags = 3

-- name: nullif of other types
-- refused: 1:8 nullif() compares TEXT[] with BIGINT: CAST one of them
SELECT nullif(tags, id) AS x FROM orders

-- name: a sum of a text and a time
-- refused: 1:13 there is no + of TEXT and TIMESTAMP: CAST one of them
SELECT note + placed AS x FROM orders

-- name: a number as condition
-- refused: 1:23 a condition is BOOLEAN, and this one is BIGINT: compare it, as in x <> 0
SELECT id FROM orders WHERE amount + 1

-- name: a number beside AND
-- refused: 1:32 AND joins conditions, and has BIGINT and BOOLEAN here: compare the value, as in x <> 0
SELECT id FROM orders WHERE id AND urgent

-- name: a number behind NOT
-- refused: 1:29 NOT is of a condition, and this is BIGINT: compare it, as in x = 0
SELECT id FROM orders WHERE NOT id

-- name: a minus before a text
-- refused: 1:8 a minus is of a number or an interval: CAST what is behind it
SELECT - note AS x FROM orders

-- name: a number that is like a text
-- refused: 1:32 LIKE compares texts, and has BIGINT and TEXT here: CAST them to TEXT
SELECT id FROM orders WHERE id LIKE 'a'

-- name: a time among numbers
-- refused: 1:36 IN compares TIMESTAMP with BIGINT: CAST one of them
SELECT id FROM orders WHERE placed IN (1, 2)

-- name: a list between numbers
-- refused: 1:34 BETWEEN compares TEXT[] with BIGINT: CAST one of them
SELECT id FROM orders WHERE tags BETWEEN 1 AND 2

-- name: an element of a number
-- refused: 1:10 x[1] is an element of a list, and this is BIGINT
SELECT id[1] AS x FROM orders

-- name: a field of a number
-- refused: 1:10 a field is read of a STRUCT, and this is BIGINT: take an element of a list first, x[1].name
SELECT id.x FROM orders

-- name: a field that a struct does not have
-- refused: 1:16 the struct has no field 'street': read one that it declares
SELECT address.street AS x FROM orders

-- name: an aggregate in WHERE
-- refused: 1:23 WHERE stands before the groups: write the condition of an aggregate in HAVING, behind GROUP BY
SELECT id FROM orders WHERE count(*) > 3

-- name: a part that times do not have
-- refused: 1:16 there is no part FORTNIGHT of a time: write YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, DOW, DOY, WEEK or EPOCH
SELECT EXTRACT(FORTNIGHT FROM placed) AS x FROM orders

-- name: a unit that times do not have
-- refused: 1:19 date_trunc() has no 'fort': write one of microsecond, millisecond, second, minute, hour, day, week, month, quarter, year
SELECT date_trunc('fort', placed) AS y FROM orders

-- name: an interval of another unit
-- refused: 1:26 '1 fortnight' is not an interval: write '1 day', '10 minutes', '1.5 seconds'
SELECT placed + INTERVAL '1 fortnight' AS x FROM orders

-- name: an interval of two units
-- refused: 1:8 an interval of two units is not planned: write one text, INTERVAL '1 year 2 months'
SELECT INTERVAL '1' YEAR TO MONTH AS x FROM orders

-- name: a word as time
-- refused: 1:48 'yesterday' is not a timestamp: write it as '2026-01-31 12:30:00'
SELECT id FROM orders WHERE placed > TIMESTAMP 'yesterday'

-- name: a month that is not there
-- refused: 1:43 '2020-13-01' is not a DATE: write it as '2026-01-31 12:30:00', or a part of that
SELECT id FROM orders WHERE placed > DATE '2020-13-01'

-- name: a text as number
-- refused: 1:34 'x' is not a BIGINT: write such a value, or CAST what it is compared with to TEXT
SELECT id FROM orders WHERE id > 'x'

-- name: an operator that is not there
-- refused: 1:11 not a query of SQL: # is not an operator: write a function
SELECT id # 3 AS x FROM orders

-- name: an operator of words
-- refused: 1:15 not a query of SQL: DIV is not an operator: write a function
SELECT amount DIV 2 AS y FROM orders

-- name: an operator of Postgres
-- refused: 1:34 the operator ^@ is not planned: write starts_with(x, y)
SELECT id FROM orders WHERE note ^@ 'a'

-- name: times that overlap
-- refused: 1:46 the operator OVERLAPS is not planned: write a.start < b.end AND b.start < a.end
SELECT id FROM orders WHERE (placed, placed) OVERLAPS (placed, placed)

-- name: a pattern of MySQL
-- refused: 1:34 RLIKE and REGEXP are not planned: write x ~ pattern
SELECT id FROM orders WHERE note REGEXP 'a'

-- name: a cast of SQL Server
-- refused: 1:8 CONVERT() is not planned: write CAST(x AS TYPE)
SELECT CONVERT(id, CHAR) AS x FROM orders

-- name: a variable
-- refused: 1:8 there are no variables: write SET parameters.name = value, and ${name} in the query
SELECT @x AS y FROM orders

-- name: a value that is given later
-- refused: 1:34 a placeholder cannot be computed here: write a value, or a parameter as ${name}
SELECT id FROM orders WHERE id = ?

-- name: a function of another type
-- refused: 1:8 trim() does not take BIGINT: CAST it
SELECT TRIM(id) AS x FROM orders

-- name: a function without arguments
-- refused: 1:8 length() needs an argument
SELECT length() AS x FROM orders

-- name: a function of fewer arguments
-- refused: 1:8 substr() needs the place of the first letter, which counts from 1: substr(x, 1), substr(x, 1, 3)
SELECT substr(note) AS x FROM orders

-- name: a window whose size depends on the row
-- refused: 1:43 the size of tumble() is a constant: INTERVAL '10 seconds'
SELECT count(*) AS n FROM orders GROUP BY tumble(CASE WHEN urgent THEN INTERVAL '1 second' END)

-- name: a limit below zero
-- refused: 1:23 a stream has no end, so it has no LIMIT: number its rows with row_number() OVER (...), and keep WHERE n <= 10
SELECT id FROM orders LIMIT -1
