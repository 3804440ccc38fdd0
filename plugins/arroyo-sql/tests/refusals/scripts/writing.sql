-- name: a view of other names
-- refused: 1:13 the view has 2 columns, and its query 1
CREATE VIEW v (a, b) AS SELECT id FROM orders;
SELECT a FROM v

-- name: a column that is needed
-- refused: 2:13 'name' is NOT NULL, and nothing is inserted into it
CREATE TABLE out (id BIGINT, name TEXT NOT NULL) WITH (connector = 'filesystem', type = 'sink', path = './out', format = 'json');
INSERT INTO out (id) SELECT id FROM orders

-- name: fewer columns than names
-- refused: 2:28 'out' has 2 columns, and the query has 1
CREATE TABLE out (id BIGINT, name TEXT) WITH (connector = 'filesystem', type = 'sink', path = './out', format = 'json');
INSERT INTO out (id, name) SELECT id FROM orders

-- name: a column that a sink does not have
-- refused: 2:13 'out' has no column 'nme'
CREATE TABLE out (id BIGINT, name TEXT) WITH (connector = 'filesystem', type = 'sink', path = './out', format = 'json');
INSERT INTO out (id, nme) SELECT id, note FROM orders

-- name: a column of another type in a sink
-- refused: 2:17 a column of type STRUCT<a VARCHAR> must have that type in the query, too
CREATE TABLE out (id BIGINT, name STRUCT<a TEXT>) WITH (connector = 'filesystem', type = 'sink', path = './out', format = 'json');
INSERT INTO out SELECT id, note FROM orders

-- name: changes and rows in one table
-- refused: 3:13 what is inserted into 'kept' has other columns, or changes where the first does not
CREATE TABLE kept (n BIGINT);
INSERT INTO kept SELECT id FROM orders;
INSERT INTO kept SELECT count(*) FROM orders;
SELECT n FROM kept

-- name: a table that nothing is inserted into
-- refused: 2:15 'kept' is a table in memory: read it below all that is inserted into it
CREATE TABLE kept (n BIGINT);
SELECT n FROM kept

-- name: a column that a source does not have
-- refused: 1:20 the source of 'bids' has no column 'nothing'
CREATE TABLE bids (nothing INT) WITH (connector = 'nexmark', table = 'bid', events = 10);
SELECT 1 AS one FROM bids

-- name: a column of another type than in the source
-- refused: 1:26 the source gives 'price' as BIGINT, not as VARCHAR: declare that, and cast it in the query
CREATE TABLE bids (price TEXT) WITH (connector = 'nexmark', table = 'bid', events = 10);
SELECT 1 AS one FROM bids

-- name: a column that cannot be computed
-- refused: 1:36 a generated column cannot be a STRUCT<a INT>
CREATE TABLE bids (price BIGINT, s STRUCT<a INT> GENERATED ALWAYS AS (price)) WITH (connector = 'nexmark', table = 'bid', events = 10);
SELECT 1 AS one FROM bids

-- name: a watermark of a column that is not there
-- refused: 1:48 the WATERMARK names the column 'placed', which the table does not have
CREATE TABLE bids (price BIGINT, WATERMARK FOR placed AS placed - INTERVAL '1 second') WITH (connector = 'nexmark', table = 'bid', events = 10);
SELECT 1 AS one FROM bids

-- name: a watermark of a number
-- refused: 1:48 the column of a WATERMARK is a TIMESTAMP: 'price' is not
CREATE TABLE bids (price BIGINT, WATERMARK FOR price AS price) WITH (connector = 'nexmark', table = 'bid', events = 10);
SELECT 1 AS one FROM bids

-- name: a watermark of a column that a source does not have
-- refused: 1:34 there is no column 'placed' for the event time
CREATE TABLE bids (WATERMARK FOR placed) WITH (connector = 'nexmark', table = 'bid', events = 10);
SELECT 1 AS one FROM bids

-- name: a watermark of a number of a source
-- refused: 1:34 an event time is a TIMESTAMP, and 'price' is a BIGINT
CREATE TABLE bids (WATERMARK FOR price) WITH (connector = 'nexmark', table = 'bid', events = 10);
SELECT 1 AS one FROM bids

-- name: two names for one column of a sink
-- refused: 2:30 two columns are called 'x': give one another name with AS
CREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = './out', format = 'json');
INSERT INTO out SELECT id AS x, amount AS x FROM orders

-- name: more names than columns in a sink that has none
-- refused: 2:28 2 columns are named, and the query has 1
CREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = './out', format = 'json');
INSERT INTO out (id, name) SELECT id FROM orders

-- name: a union of changes and rows
-- refused: 1:75 UNION of a stream that changes and one that only adds is not planned: group both, or neither
SELECT id, n FROM (SELECT id, count(*) AS n FROM orders GROUP BY id) AS t UNION ALL SELECT payment, paid FROM payments

-- name: the time of a row in a column that it is made of
-- refused: 1:67 row_time() is not there for columns that are generated: write the column of the event time
CREATE TABLE bids (price BIGINT, t TIMESTAMP GENERATED ALWAYS AS (row_time())) WITH (connector = 'nexmark', table = 'bid', events = 10);
SELECT 1 AS one FROM bids
