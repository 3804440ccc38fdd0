-- name: delete
-- refused: 1:1 rows of a stream cannot be deleted: write INSERT INTO sink SELECT ... WHERE NOT ...
DELETE FROM words WHERE k = 1

-- name: update
-- refused: 1:1 rows of a stream cannot be updated: an INSERT INTO of an aggregate or a join updates its own rows
UPDATE words SET k = 1

-- name: drop
-- refused: 1:1 a script declares all it needs: leave the CREATE statement out instead of DROP
DROP TABLE words

-- name: alter
-- refused: 1:1 a script declares all it needs: change the CREATE statement instead of ALTER
ALTER TABLE words ADD COLUMN x INT

-- name: truncate
-- refused: 1:1 a sink cannot be emptied by a script
TRUNCATE TABLE words

-- name: merge
-- refused: 1:1 MERGE is not there: write a join, and INSERT INTO a table with a PRIMARY KEY
MERGE INTO words USING numbers ON w = n WHEN MATCHED THEN DELETE

-- name: explain
-- refused: 1:1 write `arroyo plan FILE` or `arroyo sql compile FILE` to see the plan
EXPLAIN SELECT w FROM words

-- name: show tables
-- refused: 1:1 SHOW is a command of the prompt: \d
SHOW TABLES

-- name: begin
-- refused: 1:1 a script has no transactions: all of its statements together are one pipeline, which is exactly once
BEGIN

-- name: create index
-- refused: 1:8 there are no indexes: state is partitioned by the keys of each query
CREATE INDEX i ON words (w)

-- name: create database
-- refused: 1:8 there are no databases: every name is the script's own
CREATE DATABASE d

-- name: a query without INSERT into two places
-- refused: 1:8 a stream cannot overwrite: write INSERT INTO
INSERT OVERWRITE words SELECT w FROM words

-- name: copy
-- refused: 1:1 COPY is not there: write INSERT INTO sink SELECT ..., with a table of the connector filesystem
COPY words TO 'x.csv'

-- name: use
-- refused: 1:1 there are no databases: every name is the script's own
USE other

-- name: values as rows of a table
-- refused: 1:19 a query of a stream reads a table: write FROM
INSERT INTO words VALUES ('a', 'b', 1)
