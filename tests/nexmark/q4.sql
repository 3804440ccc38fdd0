SELECT category, avg(final) AS price
FROM (
    SELECT max(bid.price) AS final, auction.category
    FROM auction JOIN bid ON auction.id = bid.auction
    WHERE bid.date_time BETWEEN auction.date_time AND auction.expires
    GROUP BY auction.id, auction.category
)
GROUP BY category
