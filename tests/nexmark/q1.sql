SELECT auction, bidder, CAST(price * 908 AS DECIMAL(23, 3)) / 1000 AS price, date_time, extra FROM bid
