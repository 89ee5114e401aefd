"""What can go wrong that is neither a wrong value nor a wrong type."""


class SolverError(RuntimeError):
    """A solver could not produce a mechanism.

    Raised instead of returning a mechanism that would be wrong; the message says which
    step failed and what can be done about it.
    """


class PrivacyLeakWarning(UserWarning):
    """The release is within its budget, but may not protect what the user thinks it does."""
