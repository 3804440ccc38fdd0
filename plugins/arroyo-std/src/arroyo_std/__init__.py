"""The everyday operators of arroyo_core, under the prefix `std`."""
