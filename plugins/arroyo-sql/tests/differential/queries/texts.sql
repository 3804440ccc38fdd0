-- name: upper and lower
SELECT w, upper(w) AS u, lower(w) AS l FROM words

-- name: length counts characters
SELECT w, length(w) AS l, char_length(w) AS c, octet_length(w) AS o FROM words
-- duckdb:
SELECT w, length(w) AS l, length(w) AS c, strlen(w) AS o FROM words

-- name: trim
SELECT trim(w) AS a, ltrim(w) AS b, rtrim(w) AS c FROM words

-- name: trim of characters
SELECT trim(BOTH 'a' FROM w) AS x, trim(LEADING 'a' FROM w) AS y FROM words
-- duckdb:
SELECT trim(w, 'a') AS x, ltrim(w, 'a') AS y FROM words

-- name: substr
SELECT w, substr(w, 2) AS a, substr(w, 1, 2) AS b, substring(w FROM 2 FOR 1) AS c FROM words

-- name: left and right
SELECT w, left(w, 2) AS a, right(w, 2) AS b FROM words

-- name: replace
SELECT w, replace(w, 'a', 'oo') AS x FROM words

-- name: position
SELECT w, strpos(w, 'b') AS x, position('c' IN w) AS y FROM words

-- name: like
SELECT w FROM words WHERE w LIKE 'a%'

-- name: like of one character
SELECT w FROM words WHERE w LIKE '_'

-- name: not like
SELECT w FROM words WHERE w NOT LIKE '%b%'

-- name: ilike
SELECT w FROM words WHERE w ILIKE 'AB%'

-- name: not ilike
SELECT w FROM words WHERE w NOT ILIKE 'a%'

-- name: like with an escape
SELECT w FROM words WHERE w LIKE '%!%' ESCAPE '!'

-- name: like with another column as pattern
SELECT w, v FROM words WHERE w LIKE v

-- name: like of quotes
SELECT id FROM orders WHERE note LIKE '%''%'

-- name: comparison of texts
SELECT w, v FROM words WHERE w < v

-- name: the smaller of texts
SELECT w, v, w <= 'a' AS x FROM words

-- name: reverse and repeat
SELECT w, reverse(w) AS x, repeat(w, 2) AS y FROM words

-- name: padding
SELECT w, lpad(w, 4, '*') AS x, rpad(w, 4, '*') AS y FROM words

-- name: split_part
SELECT w, split_part(w, '_', 1) AS x, split_part(w, '_', 2) AS y FROM words

-- name: starts_with and ends_with
SELECT w, starts_with(w, 'a') AS x, ends_with(w, 'c') AS y FROM words

-- name: contains
SELECT w FROM words WHERE contains(w, 'b')

-- name: regular expressions
SELECT w, regexp_like(w, '^[a-z]+$') AS x FROM words
-- duckdb:
SELECT w, regexp_matches(w, '^[a-z]+$') AS x FROM words

-- name: the operator of regular expressions
SELECT w FROM words WHERE w ~ '^a'
-- duckdb:
SELECT w FROM words WHERE regexp_matches(w, '^a')

-- name: regexp_replace
SELECT w, regexp_replace(w, '[aeiou]', '#') AS x FROM words

-- name: regexp_replace of all
SELECT w, regexp_replace(w, '[a-c]', '.', 'g') AS x FROM words

-- name: translate
SELECT w, translate(w, 'abc', 'xyz') AS x FROM words

-- name: ascii and chr
SELECT w, ascii(w) AS x, chr(65 + k) AS y FROM words WHERE w <> ''
-- duckdb:
SELECT w, ascii(w) AS x, chr(CAST(65 + k AS INT)) AS y FROM words WHERE w <> ''

-- name: md5
SELECT w, md5(w) AS x FROM words

-- name: concatenation of other types
SELECT w || k AS x, k || '!' AS y FROM words

-- name: initcap
SELECT initcap(note) AS x FROM orders
-- duckdb:
SELECT CASE note WHEN 'gift' THEN 'Gift' WHEN 'a%b' THEN 'A%B' WHEN 'it''s' THEN 'It''S' WHEN 'déjà vu' THEN 'Déjà Vu' WHEN 'two words' THEN 'Two Words' ELSE note END AS x FROM orders

-- name: a text with two quotes and unicode
SELECT note || ' ''é''' AS x FROM orders

-- name: texts in groups are exact
SELECT note, count(*) AS n FROM orders GROUP BY note

-- name: levenshtein
SELECT w, levenshtein(w, 'abc') AS x FROM words

-- name: texts of spaces are not empty
SELECT id FROM orders WHERE note = ' '

-- name: texts of several lines
SELECT w, w || E'\n\\x' AS l, w <> 'a
b' AS other FROM words WHERE v <> 'Subquery:
  Filter: x'
-- duckdb:
SELECT w, w || E'\n\\x' AS l, w <> E'a\nb' AS other FROM words WHERE v <> E'Subquery:\n  Filter: x'
