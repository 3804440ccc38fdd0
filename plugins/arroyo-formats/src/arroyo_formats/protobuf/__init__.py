"""Protobuf: `.proto` files, and messages of them."""
