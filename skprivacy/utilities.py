"""What usefulness is: ``sum q u(W)`` over the outputs, with u convex in ``W = P(X | Y = y)``."""

from typing import ClassVar

from scipy.special import rel_entr, xlogy

from ._validation import check_choice


def entropy(distribution):
    """Return the entropy in nats along the last axis, with 0 log 0 = 0."""
    return -xlogy(distribution, distribution).sum(axis=-1)


def mutual_information(joint):
    """Return the mutual information in nats of the two variables of a joint distribution."""
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return max(0.0, float(rel_entr(joint, independent).sum()))


class MutualInformation:
    """``I(X;Y) = H(X) - sum q h(W)``: u is minus the entropy of the posterior of X."""

    name: ClassVar[str] = "mutual_information"

    def value(self, points):
        """Return u of each of `points`."""
        return -entropy(points.values)

    def offset(self, p_x):
        """Return what ``sum q u(W)`` lacks to be the utility."""
        return float(entropy(p_x))

    def of_channel(self, p_x, channel):
        """Return the utility of a channel, from its own floats."""
        return mutual_information(p_x[:, None] * channel)

    def largest(self, p_x):
        """Return the utility of releasing X itself."""
        return float(entropy(p_x))


UTILITIES = {cls.name: cls for cls in (MutualInformation,)}


def get_utility(utility, owner="get_utility"):
    """Return a utility object from its name."""
    if isinstance(utility, str) and utility in ("target", "guess"):
        raise ValueError(
            f"The 'utility' parameter of {owner} is {utility!r}, which no solver of this version "
            f"can maximise. Use utility='mutual_information'."
        )
    return UTILITIES[check_choice(owner, "utility", utility, UTILITIES)]()
