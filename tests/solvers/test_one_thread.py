"""Designs use one thread of linear algebra, and leave the others as they were."""

from threading import Thread

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skprivacy._numerics import one_thread


def n_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    np.eye(2) @ np.eye(2)
    with threadpool_limits(2, user_api="blas"):
        yield n_threads()


def test_one_thread_inside_and_as_many_as_before_outside(two_threads):
    inner = one_thread(n_threads)
    assert one_thread(lambda: (n_threads(), inner(), n_threads()))() == ({1}, {1}, {1})
    assert n_threads() == two_threads
    with pytest.raises(ZeroDivisionError):
        one_thread(lambda: 1 / 0)()
    assert n_threads() == two_threads


def test_it_holds_until_the_last_is_done(two_threads):
    @one_thread
    def longer():
        shorter = Thread(target=one_thread(lambda: None))
        shorter.start()
        shorter.join()
        return n_threads()

    assert longer() == {1}
    assert n_threads() == two_threads
