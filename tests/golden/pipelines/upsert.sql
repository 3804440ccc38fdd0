WITH net AS (
    SELECT row.* FROM (SELECT after AS row, 1 AS sign FROM changes UNION ALL SELECT before, -1 FROM changes)
    WHERE row IS NOT NULL
    GROUP BY row
    HAVING sum(sign) > 0
)
SELECT * FROM net
