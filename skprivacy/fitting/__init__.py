"""Rows in, `Fitted` out: what `fit` does."""
