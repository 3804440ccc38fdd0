-- Every part of a table.
SET parallelism = 2; SET updating_ttl = INTERVAL '1 day';
CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY, "Odd ""name" TEXT, price DECIMAL(10, 2), tags TEXT[], at TIMESTAMP(3),
  address STRUCT<city TEXT, "zip" INT NOT NULL, lines ARRAY<STRUCT<a INT>>>, m MAP<TEXT, DOUBLE PRECISION>,
  total DOUBLE GENERATED ALWAYS AS (price * 2 + length('a''b;')) STORED, topic TEXT METADATA FROM 'topic',
  WATERMARK FOR at AS at - INTERVAL '5' SECOND, PRIMARY KEY (id)
) WITH (connector = 'filesystem', type = 'source', path = './in/${NAME}', 'batch_rows' = 7, csv.header = TRUE);
/* a sink /* of */ all */
CREATE TABLE out WITH ('connector' = 'blackhole', type = sink);
INSERT INTO out (id) SELECT id FROM orders WHERE "Odd ""name" <> ';';
