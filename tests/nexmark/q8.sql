SELECT DISTINCT person.id, person.name, time_bucket(INTERVAL 10 seconds, person.date_time) AS window_start
FROM person JOIN auction
    ON person.id = auction.seller
    AND time_bucket(INTERVAL 10 seconds, person.date_time) = time_bucket(INTERVAL 10 seconds, auction.date_time)
