WITH windowed AS (
    SELECT time_bucket(INTERVAL 10 seconds, date_time) - to_seconds(10 * earlier) AS window_start, auction, bidder, channel
    FROM bid, (SELECT unnest([0, 1]) AS earlier)
),
counted AS (
    SELECT window_start, auction, channel, count(*) AS bids, count(*) FILTER (bidder % 2 = 0) AS even_bids
    FROM windowed
    GROUP BY ALL
)
SELECT
    window_start,
    auction,
    CAST(sum(bids) AS BIGINT) AS bids,
    first(channel ORDER BY bids DESC, channel) AS channel,
    first(channel ORDER BY even_bids DESC, channel) FILTER (even_bids > 0) AS even_channel
FROM counted
GROUP BY ALL
