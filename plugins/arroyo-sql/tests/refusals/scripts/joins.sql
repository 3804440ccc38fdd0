-- name: USING of a full join
-- refused: 1:48 USING in a RIGHT or FULL JOIN is not planned: write ON a.x = b.x, and which x is meant
SELECT o.id FROM orders o FULL JOIN payments p USING (customer)

-- name: USING and all columns
-- refused: 1:40 USING with SELECT * is not planned: name the columns, or write ON a.x = b.x
SELECT * FROM orders o JOIN payments p USING (customer)

-- name: lists that are equal, or both NULL
-- refused: 1:51 columns of type list<item: string> cannot be compared with NULLs: compare parts of them
SELECT o.id FROM orders o JOIN orders p ON o.tags IS NOT DISTINCT FROM p.tags

-- name: sessions by their start
-- refused: 1:223 sessions are joined by start and end: add the other one to ON
SELECT a.n FROM (SELECT customer, count(*) AS n, session(INTERVAL '5 seconds') AS w FROM orders GROUP BY customer, w) AS a JOIN (SELECT customer, session(INTERVAL '5 seconds') AS w FROM payments GROUP BY customer, w) AS b ON a.customer = b.customer AND a.w.start = b.w.start

-- name: a lookup by a full join
-- refused: 2:41 a table that is looked up is joined by JOIN or LEFT JOIN
CREATE TABLE known (customer TEXT, level INT) WITH (connector = 'filesystem', type = 'lookup', path = 'known.csv', format = 'csv');
SELECT o.id, k.level FROM orders o FULL JOIN known k ON o.customer = k.customer

-- name: a lookup without an equality
-- refused: 2:49 'known' is looked up by a column: ON a.x = known.y
CREATE TABLE known (customer TEXT, level INT) WITH (connector = 'filesystem', type = 'lookup', path = 'known.csv', format = 'csv');
SELECT o.id, k.level FROM orders o JOIN known k ON o.amount > k.level

-- name: a lookup on the left
-- refused: 2:40 a table that is looked up stands right of a stream, in JOIN or LEFT JOIN
CREATE TABLE known (customer TEXT, level INT) WITH (connector = 'filesystem', type = 'lookup', path = 'known.csv', format = 'csv');
SELECT o.id, k.level FROM known k LEFT JOIN orders o ON o.customer = k.customer

-- name: a lookup by a column that is cast
-- refused: 2:49 a lookup compares columns of 'known' as they are: cast the other side
CREATE TABLE known (customer TEXT, level INT) WITH (connector = 'filesystem', type = 'lookup', path = 'known.csv', format = 'csv');
SELECT o.id, k.level FROM orders o JOIN known k ON o.note = CAST(k.level AS TEXT)

-- name: a lookup alone
-- refused: 2:22 'known' is looked up, so it has no rows of its own: join a stream with it, by equalities and its plain columns
CREATE TABLE known (customer TEXT, level INT) WITH (connector = 'filesystem', type = 'lookup', path = 'known.csv', format = 'csv');
SELECT customer FROM known

-- name: a lookup without columns
-- refused: 1:14 a table that is looked up needs its columns
CREATE TABLE known WITH (connector = 'filesystem', type = 'lookup', path = 'known.csv', format = 'csv');
SELECT o.id, k.level FROM orders o JOIN known k ON o.customer = k.customer

-- name: a count of the table beside it
-- refused: 1:33 the columns of this query cannot be told apart: give each a name of its own with AS, and join tables instead of reading one in another
SELECT o.id, t.n FROM orders o, LATERAL (SELECT count(*) AS n FROM payments p WHERE p.order_id = o.id) AS t

-- name: a lookup in the windows of a function
-- refused: 2:63 DESCRIPTOR is of the event time of 'known', which is none: declare WATERMARK FOR a column
CREATE TABLE known (customer TEXT, level INT) WITH (connector = 'filesystem', type = 'lookup', path = 'known.csv', format = 'csv');
SELECT window_start FROM TABLE(TUMBLE(TABLE known, DESCRIPTOR(level), INTERVAL '10' SECOND))

-- name: a stream as of a time
-- refused: 1:41 FOR SYSTEM_TIME AS OF is for tables that are looked up: declare it WITH (type = 'lookup')
SELECT o.id FROM orders o JOIN payments FOR SYSTEM_TIME AS OF o.placed AS p ON o.id = p.order_id

-- name: columns of the table beside it
-- refused: 1:43 a subquery of FROM cannot read columns of the tables beside it here: join it with ON
SELECT o.id, t.n FROM orders o CROSS JOIN LATERAL (SELECT p.paid AS n FROM payments p WHERE p.order_id > o.id LIMIT 3) AS t

-- name: a condition that is a number
-- refused: 1:41 a condition is BOOLEAN, and this one is BIGINT: write ON a.x = b.y
SELECT id FROM orders o JOIN payments p ON o.id

-- name: columns of a table that is not there
-- refused: 1:8 FROM has no table 'x': write its name, or its alias
SELECT x.* FROM orders AS o

-- name: more names than columns
-- refused: 1:37 2 names are given, and the query has 1 columns: name each of them
SELECT a FROM (SELECT id FROM orders) AS t(a, b)

-- name: a name of several tables
-- refused: 1:8 several tables have a column 'customer': write which one is meant, t.customer
SELECT customer FROM orders o JOIN payments p ON o.id = p.order_id

-- name: a subquery of two columns
-- refused: 1:34 a subquery in a condition has one column: write EXISTS (SELECT 1 FROM ... WHERE b.x = a.x AND ...)
SELECT id FROM orders WHERE id = (SELECT order_id, paid FROM payments)

-- name: a subquery beside OR
-- refused: 1:42 IN (SELECT ...) and EXISTS stand in WHERE, joined by AND
SELECT id FROM orders WHERE urgent OR id IN (SELECT order_id FROM payments)

-- name: a subquery in SELECT
-- refused: 1:12 an exists cannot be computed here: EXISTS stands in WHERE, joined by AND
SELECT id, EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.id) AS x FROM orders o

-- name: sets of lists
-- refused: 1:25 lists and maps cannot be compared row by row: compare their elements, or array_to_string(x, ',')
SELECT tags FROM orders INTERSECT SELECT tags FROM orders

-- name: sets of other columns
-- refused: 1:29 EXCEPT needs as many columns on both sides: write CAST(NULL AS TYPE) where one side has none
SELECT id, note FROM orders EXCEPT SELECT id FROM orders
