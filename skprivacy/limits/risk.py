"""How the risk that a statement fails is shared among secrets."""


def confidence_of_each(confidence: float, n_secrets: int) -> float:
    """Return the confidence of each of several secrets, so that all hold at once (Bonferroni).

    The shares are fixed before rows are seen, and never moved between secrets.
    """
    return confidence if n_secrets == 1 else 1 - (1 - confidence) / n_secrets
