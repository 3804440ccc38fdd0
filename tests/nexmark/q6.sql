WITH winners AS (
    SELECT auction.id, auction.seller, bid.price, bid.date_time
    FROM auction JOIN bid ON auction.id = bid.auction
    WHERE bid.date_time BETWEEN auction.date_time AND auction.expires
    QUALIFY row_number() OVER (PARTITION BY auction.id ORDER BY bid.price DESC, bid.date_time) = 1
),
last_ten AS (
    SELECT seller, price
    FROM winners
    QUALIFY row_number() OVER (PARTITION BY seller ORDER BY date_time DESC) <= 10
)
SELECT seller, avg(price) AS price FROM last_ten GROUP BY seller
