"""Protobuf messages; `make proto` generates the modules from the `.proto` files beside them."""
