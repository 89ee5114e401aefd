import os

# Before anything loads OpenMP: small models must not wait for the cores that other tests use.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# Deadlines say more about the machine than about the code; CI draws the same examples each time.
# There are dozens of properties for nine measures: thirty examples each; `thorough` has more.
settings.register_profile(
    "skprivacy", deadline=None, max_examples=30, derandomize=os.environ.get("CI") == "true"
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


# What follows is imported where it is used: the process that hands out the tests needs none of it.


@pytest.fixture(scope="session", autouse=True)
def _no_lines_of_progress():
    """How often they are written depends on the machine: tests that want them ask for them."""
    from skprivacy.cli import messages as progress

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "LOOK", 3600.0)
        yield


@pytest.fixture(scope="module")
def frame():
    from example_tables import graduates

    return graduates()


# Where releases are attacked, but tests are about what is made of the figures; and where cells are
# learned from models, but tests are about the commands.
ATTACKED = {"cells", "cli", "engines", "fitting", "plotting", "report"}
LEARNED = {"cli"}


@pytest.fixture(autouse=True, scope="module")
def _few_trees(request):
    import quick_models

    folder = request.path.parent.name
    with pytest.MonkeyPatch.context() as patch:
        if folder in ATTACKED:
            quick_models.attack_quickly(patch)
        if folder in LEARNED:
            quick_models.learn_quickly(patch)
        yield


@pytest.fixture
def quick_attackers(monkeypatch):
    """For tests that are about what is done, and elsewhere about its figures."""
    import quick_models

    quick_models.attack_quickly(monkeypatch)
