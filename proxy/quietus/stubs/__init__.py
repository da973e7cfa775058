"""The messages of `proto/` as Python, made by `make proto`; a test says when they are not current."""
