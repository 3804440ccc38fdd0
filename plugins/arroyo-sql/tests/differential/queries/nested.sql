-- name: a field of a struct
SELECT id, address.city AS city FROM orders

-- name: a field of a struct of a table
SELECT o.id, o.address.zip AS zip FROM orders o

-- name: filter by a field
SELECT id FROM orders WHERE address.city = 'Rome'

-- name: groups by a field
SELECT address.city AS city, count(*) AS n FROM orders GROUP BY address.city

-- name: a sum of fields
SELECT customer, sum(address.zip) AS x FROM orders GROUP BY customer

-- name: an element of a list
SELECT id, tags[1] AS first, tags[2] AS second FROM orders

-- name: the length of a list
SELECT id, array_length(tags) AS n FROM orders WHERE tags <> []
-- duckdb:
SELECT id, len(tags) AS n FROM orders WHERE tags <> []

-- name: the number of elements
SELECT id, cardinality(tags) AS n FROM orders
-- duckdb:
SELECT id, len(tags) AS n FROM orders

-- name: what a list has
SELECT id, array_has(tags, 'big') AS x FROM orders WHERE array_length(tags) > 0
-- duckdb:
SELECT id, list_contains(tags, 'big') AS x FROM orders WHERE len(tags) > 0

-- name: a list of columns
SELECT n, make_array(a, b) AS x FROM numbers
-- duckdb:
SELECT n, [a, b] AS x FROM numbers

-- name: a list in brackets
SELECT n, [a, b, n] AS x FROM numbers

-- name: a struct of columns
SELECT n, named_struct('a', a, 'b', b) AS x FROM numbers
-- duckdb:
SELECT n, {'a': a, 'b': b} AS x FROM numbers

-- name: a field of a struct that was made
SELECT s.x + 1 AS y FROM (SELECT named_struct('x', a, 'y', b) AS s FROM numbers) AS t
-- duckdb:
SELECT s.x + 1 AS y FROM (SELECT {'x': a, 'y': b} AS s FROM numbers) AS t

-- name: unnest
SELECT id, unnest(tags) AS tag FROM orders

-- name: unnest then count
SELECT tag, count(*) AS n FROM (SELECT unnest(tags) AS tag FROM orders) AS t GROUP BY tag

-- name: unnest then filter
SELECT id, tag FROM (SELECT id, unnest(tags) AS tag FROM orders) AS t WHERE tag = 'big'

-- name: unnest of a list of columns
SELECT n, unnest([a, b]) AS x FROM numbers

-- name: array_to_string
SELECT id, array_to_string(tags, ',') AS x FROM orders WHERE array_length(tags) > 0
-- duckdb:
SELECT id, array_to_string(tags, ',') AS x FROM orders WHERE len(tags) > 0

-- name: lists compared
SELECT id FROM orders WHERE tags = ['big', 'big']

-- name: list append and concat
SELECT id, array_append(tags, 'end') AS x, array_concat(tags, ['a', 'b']) AS y FROM orders WHERE tags IS NOT NULL
-- duckdb:
SELECT id, list_append(tags, 'end') AS x, list_concat(tags, ['a', 'b']) AS y FROM orders WHERE tags IS NOT NULL

-- name: groups by a list
-- refused: 1:40 rows cannot be keyed by 'tags'
SELECT tags, count(*) AS n FROM orders GROUP BY tags

-- name: groups by a struct
SELECT address, count(*) AS n FROM orders GROUP BY address

-- name: distinct structs
SELECT DISTINCT address FROM orders

-- name: structs in a union
SELECT id, address FROM orders WHERE urgent UNION ALL SELECT id, address FROM orders WHERE NOT urgent

-- name: null structs
SELECT id FROM orders WHERE address IS NULL

-- name: elements of no list
SELECT id, tags[9] AS x FROM orders

-- name: a join by a field of a struct
SELECT o.id, n.n FROM orders o JOIN numbers n ON o.address.zip = n.n
