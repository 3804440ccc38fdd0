WITH net AS (
    SELECT row.* FROM (SELECT after AS row, 1 AS sign FROM changes UNION ALL SELECT before, -1 FROM changes)
    WHERE row IS NOT NULL
    GROUP BY row
    HAVING sum(sign) > 0
)
SELECT
    owner,
    count(*) AS accounts,
    sum(balance)::BIGINT AS total,
    avg(balance) AS middle,
    max(balance) AS most,
    count(DISTINCT balance) AS different,
    median(balance) FILTER (WHERE id % 3 = 0) AS middle_of_some
FROM net
GROUP BY owner
