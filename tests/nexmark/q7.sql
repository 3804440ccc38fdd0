SELECT auction, bidder, price, date_time, extra
FROM bid
QUALIFY rank() OVER (PARTITION BY time_bucket(INTERVAL 10 seconds, date_time) ORDER BY price DESC) = 1
