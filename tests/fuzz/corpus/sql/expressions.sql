CREATE TABLE ticks WITH (connector = 'impulse', event_rate = 10, message_count = 100);
SELECT CASE WHEN counter > 3 THEN 'a' || counter ELSE NULL END AS x, CAST(counter AS DOUBLE) / 2, [counter, 1][1],
  coalesce(nullif(counter, 1), 2), counter BETWEEN 1 AND 5, DATE '2026-01-01', named_struct('a', 1)['a'] FROM ticks
UNION ALL SELECT DISTINCT 'x', 1.5, subtask_index, 2, TRUE, DATE '2026-01-02', 3 FROM ticks;
