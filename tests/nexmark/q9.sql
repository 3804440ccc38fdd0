SELECT
    auction.*,
    bid.auction,
    bid.bidder,
    bid.price,
    bid.date_time AS bid_date_time,
    bid.extra AS bid_extra
FROM auction JOIN bid ON auction.id = bid.auction
WHERE bid.date_time BETWEEN auction.date_time AND auction.expires
QUALIFY row_number() OVER (PARTITION BY auction.id ORDER BY bid.price DESC, bid.date_time) = 1
