"""Functions of places: distance, geohash, H3 cells and points in polygons."""
