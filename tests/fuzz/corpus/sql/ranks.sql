CREATE TABLE ticks WITH (connector = 'impulse', event_rate = 10, message_count = 100);
SELECT c FROM (SELECT counter AS c, row_number() OVER (PARTITION BY counter % 3 ORDER BY counter DESC) AS r FROM ticks) AS t WHERE r <= 2
