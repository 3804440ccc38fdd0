SELECT
    auction,
    bidder,
    CAST(price * 908 AS DECIMAL(23, 3)) / 1000 AS price,
    CASE
        WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime'
        WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime'
        ELSE 'otherTime'
    END AS bid_time_type,
    date_time,
    extra,
    len(regexp_extract_all(extra, 'c')) AS c_counts
FROM bid
WHERE price * 908 > 1000000000 AND price * 908 < 50000000000
