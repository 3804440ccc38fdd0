-- name: an unknown table
-- refused: 1:15 there is no table 'wurds'
SELECT w FROM wurds

-- name: a table of a schema
-- refused: 1:15 there is no table 'other.wurds'
SELECT w FROM other.wurds

-- name: a file as a table
-- refused: 1:15 a file is not a table: declare one, CREATE TABLE t (...) WITH (connector = 'filesystem', path = 'data/words.csv.gz'), and read FROM t
SELECT w FROM 'data/words.csv.gz'

-- name: a file as a table, without quotes
-- refused: 1:15 a file is not a table: declare one, CREATE TABLE t (...) WITH (connector = 'filesystem', path = 'words.parquet'), and read FROM t
SELECT w FROM words.parquet

-- name: an unknown column
-- refused: 2:8 there is no column 'weight'
SELECT w,
       weight
FROM words

-- name: an unknown column of an alias
-- refused: 1:8 there is no column 't.x'
SELECT t.x FROM words AS t

-- name: an unknown alias
-- refused: 1:8 there is no column 'q.w'
SELECT q.w FROM words AS t

-- name: an unknown column in a filter
-- refused: 1:27 there is no column 'kk'
SELECT w FROM words WHERE kk > 1

-- name: an unknown column in a group
-- refused: 1:42 there is no column 'kk'
SELECT count(*) AS n FROM words GROUP BY kk

-- name: an unknown column of a join
-- refused: 1:53 there is no column 'p.orderid'
SELECT o.id FROM orders o JOIN payments p ON o.id = p.orderid

-- name: a name that both tables have
-- refused: 1:8 several tables have a column 'customer': write which one is meant, t.customer
SELECT customer FROM orders o JOIN payments p ON o.id = p.order_id

-- name: an unknown function
-- refused: 1:8 there is no function 'lenght'
SELECT lenght(w) FROM words

-- name: an unknown function in a second line
-- refused: 2:9 there is no function 'reverze'
SELECT w,
  upper(reverze(w)) AS x
FROM words

-- name: a function of another number of arguments
-- refused: 1:8 upper() takes 1 arguments, and gets 2
SELECT upper(w, v) FROM words

-- name: an alias used in a filter
-- refused: 1:38 there is no column 'x'
SELECT a + 1 AS x FROM numbers WHERE x > 1

-- name: a table defined twice
-- refused: 1:14 there are two tables 'words'
CREATE TABLE words (w TEXT)

-- name: a view of the name of a table
-- refused: 1:13 there are two tables 'words'
CREATE VIEW words AS SELECT n FROM numbers

-- name: two columns of one name
-- refused: 1:24 column 'a' is declared twice: first in line 7, column 17
CREATE TABLE t (a INT, a TEXT)

-- name: a common table expression that is unknown
-- refused: 1:47 there is no table 'tt'
WITH t AS (SELECT w FROM words) SELECT w FROM tt

-- name: a view used before it is there
-- refused: 1:15 there is no table 'later'
SELECT w FROM later;
CREATE VIEW later AS SELECT w FROM words

-- name: a memory table read between two statements that write it
-- refused: 3:15 'kept' is a table in memory: read it below all that is inserted into it
CREATE TABLE kept (a TEXT);
INSERT INTO kept SELECT w FROM words;
SELECT a FROM kept;
INSERT INTO kept SELECT v FROM words

-- name: a memory table read before it is written
-- refused: 2:15 'kept' is a table in memory: read it below all that is inserted into it
CREATE TABLE kept (a INT);
SELECT a FROM kept
