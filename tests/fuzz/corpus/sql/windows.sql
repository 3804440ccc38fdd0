CREATE TABLE ticks (WATERMARK FOR timestamp AS timestamp - INTERVAL '1 second')
WITH (connector = 'impulse', event_rate = 10, message_count = 100);
SELECT window.start AS s, n FROM (
  SELECT tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM ticks WHERE counter % 2 = 0 GROUP BY 1
) AS t;
