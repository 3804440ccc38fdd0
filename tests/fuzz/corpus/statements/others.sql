CREATE FUNCTION f FROM 'file:///x.tar' WITH (sha256 = 'abc');
CREATE TEMPORARY TABLE t AS SELECT 1 AS x;
CREATE VIEW v (a, b) AS (SELECT x, -1e5 FROM t);
SET parameters.limit = 10;
WITH w AS (SELECT * FROM v WHERE a > ${limit:-3}) SELECT $$a$$, E'\n', x'00' FROM w
