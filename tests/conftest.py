import os

# Before anything loads OpenMP: small models must not wait for the cores that other tests use.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from example_tables import graduates
from hypothesis import settings
from sklearn.ensemble import HistGradientBoostingClassifier

from skprivacy.cells import score_cells
from skprivacy.cli import progress
from skprivacy.metrics import attack

# Deadlines say more about the machine than about the code; CI draws the same examples each time.
# There are dozens of properties for nine measures: fifty examples each; `thorough` has more.
settings.register_profile(
    "skprivacy", deadline=None, max_examples=50, derandomize=os.environ.get("CI") == "true"
)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("skprivacy")


def _fail_if_skipped(report):
    """On CI every component is there: a test skipped for a missing one is a failure."""
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped on CI: {report.longrepr[-1]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.fixture(scope="session", autouse=True)
def _no_lines_of_progress():
    """How often they are written depends on the machine: tests that want them ask for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "LOOK", 3600.0)
        yield


@pytest.fixture(scope="module")
def frame():
    return graduates()


class FewTrees(HistGradientBoostingClassifier):
    """An attacker that takes next to no time."""

    def fit(self, X, y):
        self.set_params(max_iter=5)
        return super().fit(X, y)


def small_model(**options):
    """Return a model of a target as it is, which can be saved, but for the number of trees."""
    return HistGradientBoostingClassifier(**options | {"max_iter": 20})


# Where releases are attacked, but tests are about what is made of the figures; and where cells are
# learned from models, but tests are about the commands.
ATTACKED = {"cells", "cli", "files", "fitting", "plotting", "report"}
LEARNED = {"cli"}


@pytest.fixture(autouse=True, scope="module")
def _few_trees(request):
    folder = request.path.parent.name
    with pytest.MonkeyPatch.context() as patch:
        if folder in ATTACKED:
            attack_quickly(patch)
        if folder in LEARNED:
            patch.setattr(score_cells, "HistGradientBoostingClassifier", small_model)
        yield


def attack_quickly(patch):
    patch.setattr(attack, "HistGradientBoostingClassifier", FewTrees)


@pytest.fixture
def quick_attackers(monkeypatch):
    """For tests that are about what is done, and elsewhere about its figures."""
    attack_quickly(monkeypatch)
