SELECT
    customer,
    time_bucket(INTERVAL 10 seconds, moment) AS window_start,
    window_start + INTERVAL 10 seconds AS window_end,
    window_end - INTERVAL 1 microsecond AS window_time,
    count(*) AS orders,
    count(amount) AS amounts,
    count(*) FILTER (WHERE amount > 300) AS large,
    sum(amount)::BIGINT AS total,
    sum(weight) FILTER (WHERE urgent) AS urgent_weight,
    min(amount) AS least,
    max(moment) AS latest,
    avg(weight) AS mean_weight,
    var_samp(amount) AS spread,
    CASE WHEN NOT isnan(corr(amount, weight)) THEN corr(amount, weight) END AS relation,
    bool_or(urgent) AS any_urgent,
    bool_and(urgent) AS all_urgent,
    bit_xor(amount) AS bits,
    count(DISTINCT amount) AS different,
    median(amount) AS middle
FROM orders
GROUP BY customer, window_start
