import os

# Before anything loads OpenMP: small models must not wait for the cores that other tests use.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from example_tables import graduates
from hypothesis import settings

from skprivacy.cli import progress

# Deadlines say more about the machine than about the code; CI draws the same examples each time.
settings.register_profile("skprivacy", deadline=None, derandomize=os.environ.get("CI") == "true")
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
        patch.setattr(progress, "EVERY", 3600.0)
        yield


@pytest.fixture(scope="module")
def frame():
    return graduates()
