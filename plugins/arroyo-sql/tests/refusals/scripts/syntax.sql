-- name: a word that begins no statement
-- refused: 1:1 expected a statement, not 'SELEKT'
SELEKT * FROM words

-- name: a misspelled keyword
-- refused: 1:15 not a query of SQL: expected: end of statement, found: words
SELECT w FORM words

-- name: a missing list of columns
-- refused: 1:1 SELECT needs columns: SELECT *, or their names
SELECT FROM words

-- name: a missing table
-- refused: 1:14 not a query of SQL: expected: identifier, found: EOF
SELECT w FROM

-- name: an open parenthesis
-- refused: 1:15 not a query of SQL: expected: ), found: FROM
SELECT (a + 1 FROM numbers

-- name: a closed parenthesis too much
-- refused: 1:13 not a query of SQL: expected: end of statement, found: )
SELECT a + 1) FROM numbers

-- name: an unclosed text
-- refused: 1:8 a text that begins here has no end: a ' is missing
SELECT 'open FROM words

-- name: an unclosed name in quotes
-- refused: 1:8 a name that begins here has no end: a " is missing
SELECT "open FROM words

-- name: an unclosed comment
-- refused: 1:21 a comment that begins here has no end: */ is missing
SELECT w FROM words /* and so on

-- name: two commas
-- refused: 1:10 not a query of SQL: expected: an expression, found: ,
SELECT w,, k FROM words

-- name: a character that means nothing
-- refused: 1:31 a placeholder cannot be computed here: write a value, or a parameter as ${name}
SELECT w FROM words WHERE k = ?

-- name: a second WHERE
-- refused: 1:33 not a query of SQL: expected: end of statement, found: WHERE
SELECT w FROM words WHERE k = 1 WHERE k = 2

-- name: a case without end
-- refused: 1:18 not a query of SQL: expected: end of statement, found: a
SELECT CASE WHEN a > 0 THEN 1 FROM numbers

-- name: two statements without a semicolon
-- refused: 2:8 INTO stands in INSERT INTO, before the query
SELECT w FROM words
INSERT INTO x SELECT w FROM words
