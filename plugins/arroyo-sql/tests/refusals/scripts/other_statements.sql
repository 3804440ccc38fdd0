-- name: analyze
-- refused: 1:1 there are no statistics to gather: a query is planned without them
ANALYZE TABLE words

-- name: commit
-- refused: 1:1 a script has no transactions: all of its statements together are one pipeline, which is exactly once
COMMIT

-- name: declare
-- refused: 1:1 DECLARE is not there: write SET parameters.name = value, and ${name} where it is used
DECLARE x INT

-- name: describe
-- refused: 1:1 DESCRIBE is a command of the prompt: \d table
DESCRIBE words

-- name: a query that begins with FROM
-- refused: 1:1 a query begins with SELECT: write SELECT * FROM ...
FROM words

-- name: grant
-- refused: 1:1 a script knows no users
GRANT SELECT ON words TO x

-- name: create catalog
-- refused: 1:8 there are no catalogs: declare each table with CREATE TABLE
CREATE CATALOG c

-- name: create connection
-- refused: 1:8 there are no connections: write the options into the table, and passwords as '${NAME}'
CREATE CONNECTION c

-- name: create materialized view
-- refused: 1:8 write CREATE VIEW for a query that others read, or INSERT INTO a table that keeps its rows
CREATE MATERIALIZED VIEW v AS SELECT w FROM words

-- name: create pipeline
-- refused: 1:8 a script is a pipeline: its name is that of the file, or SET name = 'name'
CREATE PIPELINE p

-- name: create schema
-- refused: 1:8 there are no schemas: every name is the script's own
CREATE SCHEMA s

-- name: create sink
-- refused: 1:8 write CREATE TABLE name (...) WITH (connector = '...', type = 'sink')
CREATE SINK s FROM words

-- name: create source
-- refused: 1:8 write CREATE TABLE name (...) WITH (connector = '...', type = 'source')
CREATE SOURCE s

-- name: create stream
-- refused: 1:8 write CREATE TABLE name (...) WITH (connector = '...', type = 'source')
CREATE STREAM s (a INT)

-- name: create type
-- refused: 1:8 types have no names: write STRUCT<name TYPE, ...> where it is used
CREATE TYPE t AS (a INT)
