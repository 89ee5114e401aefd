"""The examples in the pages are tests; what the build makes or runs itself is not."""

import matplotlib
import pytest
import sklearn.ensemble  # noqa: F401  (only threads of what is loaded can be limited)
from threadpoolctl import threadpool_limits

collect_ignore = ["conf.py", "gallery_options.py", "staff.py"]
collect_ignore_glob = ["pictures/*", "auto_examples/*", "_build/*"]


@pytest.fixture(autouse=True)
def _one_thread_and_no_window():
    """Keep small models from waiting for cores that others use, and displays from opening."""
    matplotlib.use("agg")
    with threadpool_limits(1):
        yield
