-- name: insert into a source
-- refused: 1:13 table 'words' is a source: it cannot be written
INSERT INTO words SELECT w, v, k FROM words

-- name: insert into an unknown table
-- refused: 1:13 'nowhere' is not a table
INSERT INTO nowhere SELECT w FROM words

-- name: insert into a view
-- refused: 2:13 'seen' is a view: it cannot be written
CREATE VIEW seen AS SELECT w FROM words;
INSERT INTO seen SELECT w FROM words

-- name: too few columns
-- refused: 2:17 'out' has 2 columns, and the query has 1
CREATE TABLE out (a TEXT, b TEXT) WITH (connector = 'blackhole', type = 'sink');
INSERT INTO out SELECT w FROM words

-- name: too many columns
-- refused: 2:17 'out' has 1 columns, and the query has 2
CREATE TABLE out (a TEXT) WITH (connector = 'blackhole', type = 'sink');
INSERT INTO out SELECT w, v FROM words

-- name: a column of another type
-- refused: 2:17 TEXT[] cannot be cast to BIGINT: cast one of its elements, x[1]
CREATE TABLE out (a BIGINT) WITH (connector = 'blackhole', type = 'sink');
INSERT INTO out SELECT tags FROM orders

-- name: a source of a sink
-- refused: 2:15 table 'out' is a sink: it cannot be read
CREATE TABLE out (a TEXT) WITH (connector = 'blackhole', type = 'sink');
SELECT a FROM out

-- name: an unknown connector
-- refused: 1:42 there is no connector 'kafkaesque' with a source
CREATE TABLE t (a INT) WITH (connector = 'kafkaesque', type = 'source');
SELECT a FROM t

-- name: no connector
-- refused: 1:14 table 't' needs the option 'connector': WITH (connector = '...', ...)
CREATE TABLE t (a INT) WITH (type = 'source');
SELECT a FROM t

-- name: an unknown option
-- refused: 1:87 connector 'filesystem' (filesystem.source) has no option 'pth'
CREATE TABLE t (a INT) WITH (connector = 'filesystem', type = 'source', path = './x', pth = 'y');
SELECT a FROM t

-- name: a value of another kind
-- refused: 1:100 'batch_rows' must be a whole number, not the string 'many'
CREATE TABLE t (a INT) WITH (connector = 'filesystem', type = 'source', path = './x', batch_rows = 'many');
SELECT a FROM t

-- name: a missing option
-- refused: 1:42 table 't' (filesystem.source) needs the field 'path'
CREATE TABLE t (a INT) WITH (connector = 'filesystem', type = 'source');
SELECT a FROM t

-- name: an unknown type of table
-- refused: 1:63 'type' is one of source, sink and lookup
CREATE TABLE t (a INT) WITH (connector = 'filesystem', type = 'sauce', path = './x');
SELECT a FROM t

-- name: an unknown format
-- refused: 1:96 there is no format 'parket'
CREATE TABLE t (a INT) WITH (connector = 'filesystem', type = 'source', path = './x', format = 'parket');
SELECT a FROM t

-- name: an option twice
-- refused: 1:87 option 'path' is written twice: first in line 7, column 73
CREATE TABLE t (a INT) WITH (connector = 'filesystem', type = 'source', path = './x', path = './y');
SELECT a FROM t

-- name: a watermark for no column
-- refused: 1:44 the WATERMARK names the column 'b', which the table does not have
CREATE TABLE t (a TIMESTAMP, WATERMARK FOR b) WITH (connector = 'filesystem', type = 'source', path = './x');
SELECT a FROM t

-- name: a watermark of a text
-- refused: 1:39 the column of a WATERMARK is a TIMESTAMP: 'a' is not
CREATE TABLE t (a TEXT, WATERMARK FOR a) WITH (connector = 'filesystem', type = 'source', path = './x');
SELECT a FROM t

-- name: an unknown setting
-- refused: 1:5 there is no setting 'updating_tl'
SET updating_tl = '1 day';
SELECT w FROM words

-- name: a setting of another kind
-- refused: 1:19 'parallelism' must be a whole number, not the string 'many'
SET parallelism = 'many';
SELECT w FROM words

-- name: a duration without a unit
-- refused: 1:20 updating_ttl is a duration: '1 hour', or 0 to keep all
SET updating_ttl = '10';
SELECT w FROM words

-- name: a table without a closing parenthesis
-- refused: 1:23 expected a , or ) or more of the column, not 'WITH'
CREATE TABLE t (a INT WITH (connector = 'blackhole', type = 'sink')

-- name: a column without a type
-- refused: 1:18 expected a type, not ','
CREATE TABLE t (a, b INT)

-- name: a table without a name
-- refused: 1:14 expected the name of the table, not '('
CREATE TABLE (a INT)

-- name: a primary key that is no column
-- refused: 1:37 the PRIMARY KEY names the column 'b', which the table does not have
CREATE TABLE t (a INT, PRIMARY KEY (b)) WITH (connector = 'filesystem', type = 'source', path = './x', format = 'parquet');
SELECT a FROM t
