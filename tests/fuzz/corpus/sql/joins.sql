CREATE TABLE ticks WITH (connector = 'impulse', event_rate = 10, message_count = 100);
CREATE VIEW few AS SELECT counter AS c, count(*) AS n FROM ticks GROUP BY counter HAVING count(*) > 1;
SELECT a.c, b.counter FROM few a LEFT JOIN ticks b ON a.c = b.counter WHERE a.n NOT IN (1, NULL) OR b.counter IS NULL;
