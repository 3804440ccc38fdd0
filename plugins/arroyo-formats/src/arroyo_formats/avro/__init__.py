"""Avro: schemas, their resolution, and messages of them."""
