-- name: the text of a value
SELECT e, doc ->> 'b' AS x FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN json_extract_string(doc, '$.b') END AS x FROM events

-- name: the JSON text of a value
SELECT e, doc -> 'c' AS x FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN CAST(json_extract(doc, '$.c') AS VARCHAR) END AS x FROM events

-- name: steps into a value
SELECT e, doc -> 'c' ->> 'd' AS x, doc -> 'l' -> 0 ->> 'a' AS y FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN json_extract_string(doc, '$.c.d') END AS x, CASE WHEN json_valid(doc) THEN json_extract_string(doc, '$.l[0].a') END AS y FROM events

-- name: whether there is a value
SELECT e FROM events WHERE doc ? 'f'
-- duckdb:
SELECT e FROM events WHERE CASE WHEN json_valid(doc) THEN json_exists(doc, '$.f') END

-- name: whether there is a value in what is not there
SELECT e, json_contains(doc, 'c', 'd') AS x, coalesce(json_contains(doc, 'l', 0, 'a'), TRUE) AS y FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN json_exists(doc, '$.c.d') WHEN doc IS NOT NULL THEN FALSE END AS x, CASE WHEN doc IS NULL THEN TRUE WHEN json_valid(doc) THEN json_exists(doc, '$.l[0].a') ELSE FALSE END AS y FROM events

-- name: whole numbers
SELECT e, json_get_int(doc, 'a') AS x, json_get_int(doc, 'l', 0) + 1 AS y FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc, '$.a') IN ('BIGINT', 'UBIGINT') THEN CAST(json_extract(doc, '$.a') AS BIGINT) END END AS x, CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc, '$.l[0]') IN ('BIGINT', 'UBIGINT') THEN CAST(json_extract(doc, '$.l[0]') AS BIGINT) END END + 1 AS y FROM events

-- name: numbers
SELECT e, json_get_float(doc, 'a') AS x FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc, '$.a') IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN CAST(json_extract(doc, '$.a') AS DOUBLE) END END AS x FROM events

-- name: booleans
SELECT e, json_get_bool(doc, 'f') AS x FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc, '$.f') = 'BOOLEAN' THEN CAST(json_extract(doc, '$.f') AS BOOLEAN) END END AS x FROM events

-- name: texts alone
SELECT e, json_get_str(doc, 'a') AS x, extract_json_string(doc, '$.c.d') AS y FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc, '$.a') = 'VARCHAR' THEN json_extract_string(doc, '$.a') END END AS x, CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc, '$.c.d') = 'VARCHAR' THEN json_extract_string(doc, '$.c.d') END END AS y FROM events

-- name: lengths
SELECT e, json_length(doc) AS x, json_length(doc, 'l') AS y FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN CASE json_type(doc) WHEN 'ARRAY' THEN json_array_length(doc) WHEN 'OBJECT' THEN len(json_keys(doc)) END END AS x, CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc, '$.l') = 'ARRAY' THEN json_array_length(doc, '$.l') END END AS y FROM events

-- name: names of an object
SELECT e, json_object_keys(doc) AS x FROM events
-- duckdb:
SELECT e, CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc) = 'OBJECT' THEN json_keys(doc) END END AS x FROM events

-- name: elements become rows
SELECT e, unnest(json_get_array(doc, 'l')) AS x FROM events
-- duckdb:
SELECT e, CAST(unnest(CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc, '$.l') = 'ARRAY' THEN json_extract(doc, '$.l[*]') END END) AS VARCHAR) AS x FROM events

-- name: all values of a path
SELECT e, extract_json(doc, '$.l[*]') AS x FROM events WHERE doc ? 'l'
-- duckdb:
SELECT e, CAST(json_extract(doc, '$.l[*]') AS VARCHAR[]) AS x FROM events WHERE CASE WHEN json_valid(doc) THEN json_exists(doc, '$.l') END

-- name: groups by a value
SELECT doc ->> 'b' AS b, count(*) AS n, sum(json_get_int(doc, 'a')) AS s FROM events GROUP BY doc ->> 'b'
-- duckdb:
SELECT CASE WHEN json_valid(doc) THEN json_extract_string(doc, '$.b') END AS b, count(*) AS n, sum(CASE WHEN json_valid(doc) THEN CASE WHEN json_type(doc, '$.a') IN ('BIGINT', 'UBIGINT') THEN CAST(json_extract(doc, '$.a') AS BIGINT) END END) AS s FROM events GROUP BY 1

-- name: windows of a value
SELECT doc ->> 'b' AS b, count(*) AS n FROM events GROUP BY doc ->> 'b', tumble(INTERVAL '20 seconds')
-- duckdb:
SELECT CASE WHEN json_valid(doc) THEN json_extract_string(doc, '$.b') END AS b, count(*) AS n FROM events GROUP BY 1, time_bucket(INTERVAL '20 seconds', happened)

-- name: a join on a value
SELECT e.e, o.id FROM events e JOIN orders o ON json_get_int(e.doc, 'a') = o.amount
-- duckdb:
SELECT e.e, o.id FROM events e JOIN orders o ON CASE WHEN json_valid(e.doc) THEN CASE WHEN json_type(e.doc, '$.a') IN ('BIGINT', 'UBIGINT') THEN CAST(json_extract(e.doc, '$.a') AS BIGINT) END END = o.amount

-- name: texts that are not JSON
SELECT e, doc FROM events WHERE doc IS NOT NULL AND json_get(doc, 'a') IS NULL AND NOT doc ? 'a'
-- duckdb:
SELECT e, doc FROM events WHERE doc IS NOT NULL AND CASE WHEN json_valid(doc) THEN NOT json_exists(doc, '$.a') ELSE TRUE END
