WITH net AS (
    SELECT row.* FROM (SELECT after AS row, 1 AS sign FROM changes UNION ALL SELECT before, -1 FROM changes)
    WHERE row IS NOT NULL
    GROUP BY row
    HAVING sum(sign) > 0
)
SELECT *, row_number() OVER (PARTITION BY owner ORDER BY balance DESC NULLS LAST, id) AS place
FROM net
QUALIFY place <= 3
