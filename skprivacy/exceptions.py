"""Exceptions and warnings of the package."""


class SolverError(RuntimeError):
    """A solver could not produce a mechanism.

    Raised instead of returning a wrong mechanism; the message says which step failed and what can
    be done about it.

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy import SolverError, design_mechanism
    >>> joint = np.random.default_rng(0).random((2, 12))
    >>> try:
    ...     mechanism = design_mechanism(joint, 0.01, solver="best_partition")
    ... except SolverError as error:
    ...     print(str(error)[:71])
    ...     mechanism = design_mechanism(joint, 0.01, solver="subset_merging")
    The solver 'best_partition' cannot examine all partitions of 12 symbols
    >>> mechanism.solver
    'subset_merging'
    """


class BesideError(ValueError):
    """No mechanism exists: columns published beside the release exceed the budget on their own.

    The message names the value, how much it reveals, and a budget that is large enough.
    """


class NotDesignedError(ValueError, AttributeError):
    """A fitted attribute is not available, because the design that it needs has failed.

    After `partial_fit` the channel is designed when it is first needed. The message is copied from
    the error in the design, which is the cause of this one. As with scikit-learn's
    `NotFittedError`, `hasattr` treats the attribute as missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> frame = pd.DataFrame({"sex": list("mfmf") * 50, "band": list("uuvw") * 50})
    >>> funnel = PrivacyFunnelTransformer(0.1, sensitive="sex").partial_fit(frame)
    >>> hasattr(funnel.set_params(epsilon=-1), "mechanism_")
    False
    >>> hasattr(funnel.set_params(epsilon=0.2), "mechanism_")
    True
    """


class PrivacyLeakWarning(UserWarning):
    """The release is within its budget, but may not protect what the user thinks it does.

    Examples
    --------
    Where nobody reads warnings, stop such a release:

    >>> import warnings
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning
    >>> frame = pd.DataFrame({"sex": list("mfmf") * 50, "band": list("uvuw") * 50})
    >>> funnel = PrivacyFunnelTransformer(0.1, sensitive="sex")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PrivacyLeakWarning)
    ...     funnel.fit(frame)
    Traceback (most recent call last):
    ...
    skprivacy.exceptions.PrivacyLeakWarning: X determines S in these rows: ...

    Silence it with ``warnings.simplefilter("ignore", PrivacyLeakWarning)``, once you have
    understood it.
    """


class FiniteSampleWarning(UserWarning):
    """There are too few rows.

    The budget holds for the rows of `fit`, but may be exceeded in the population they were drawn
    from; or, with a `confidence`, little or nothing can be released.
    `skprivacy.metrics.population_leakage` estimates how much may leak in the population.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from skprivacy import FiniteSampleWarning, PrivacyFunnelTransformer
    >>> frame = pd.DataFrame({"s": list("aaab") * 9, "x": list("uvww") * 9})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", FiniteSampleWarning)
    ...     PrivacyFunnelTransformer(0.02, sensitive="s").fit(frame)
    Traceback (most recent call last):
    ...
    skprivacy.exceptions.FiniteSampleWarning: epsilon holds for these rows only, ...
    """
