"""Models that take next to no time, for tests that are not about what they find."""

from sklearn.ensemble import HistGradientBoostingClassifier

from skprivacy.cells import scores as score_cells
from skprivacy.metrics import attack


class FewTrees(HistGradientBoostingClassifier):
    """An attacker that takes next to no time."""

    def fit(self, X, y):
        self.set_params(max_iter=5)
        return super().fit(X, y)


def small_model(**options):
    """Return a model of a target as it is, which can be saved, but for the number of trees."""
    return HistGradientBoostingClassifier(**options | {"max_iter": 20})


def attack_quickly(patch):
    patch.setattr(attack, "HistGradientBoostingClassifier", FewTrees)


def learn_quickly(patch):
    patch.setattr(score_cells, "HistGradientBoostingClassifier", small_model)
