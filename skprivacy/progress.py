"""Watch long computations, and cancel them."""

from ._messages import watched

__all__ = ["watched"]
