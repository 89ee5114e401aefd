"""What a user of a release is warned of: what threatens the guarantee, or is surely a mistake."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from example_tables import N, make

from skprivacy import FiniteSampleWarning, PrivacyLeakWarning


def said(table, *, as_dict=False, **options):
    """Return the warnings of a fit: their kinds and their texts."""
    transformer = make(**options)
    if as_dict:
        transformer.set_params(epsilon={transformer.sensitive: transformer.epsilon})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        transformer.fit(table)
    return [(warning.category, str(warning.message)) for warning in caught]


def with_few(frame):
    """Return rows with a group of two persons."""
    return frame.assign(sex=frame["sex"].where(frame.index > 5, "Huntington"))


def with_two_values(frame):
    return frame.assign(education=np.where(frame["education"] == frame["education"][0], "a", "b"))


CASES = {
    "a small group": (with_few, {}, FiniteSampleWarning, "much more may leak"),
    "few rows": (lambda frame: frame[:60], {}, FiniteSampleWarning, "much more may leak"),
    "a huge budget": (
        lambda frame: frame,
        {"epsilon": 5.0},
        PrivacyLeakWarning,
        "next to nothing",
    ),
    "a copy of S": (
        lambda frame: frame.assign(education=frame["sex"]),
        {},
        PrivacyLeakWarning,
        "X determines",
    ),
    "a constant S": (
        lambda frame: frame.assign(sex="f"),
        {},
        PrivacyLeakWarning,
        "nothing to protect",
    ),
    "no budget": (with_two_values, {"epsilon": 0.0}, UserWarning, "allows no more"),
    "no budget, sure": (
        with_two_values,
        {"epsilon": 0.0, "confidence": 0.95},
        UserWarning,
        "no number of rows can show",
    ),
}


@pytest.mark.parametrize("name", CASES)
class TestDesigns:
    def test_it_is_told(self, name, frame):
        prepared, options, kind, text = CASES[name]
        found = said(prepared(frame), **options)
        assert [each for each in found if each[0] is kind and text in each[1]]

    def test_a_dict_with_one_key_is_told_the_same_but_for_the_name(self, name, frame):
        prepared, options, *_ = CASES[name]
        table = prepared(frame)
        one = said(table, **options)
        named = [(kind, re.sub(r"\bsex\b", "S", text)) for kind, text in said(table, as_dict=True, **options)]  # fmt: skip
        assert named == one


@pytest.mark.parametrize("name", CASES)
def test_texts_have_no_figures_and_no_groups(name, frame):
    prepared, options, *_ = CASES[name]
    for _, text in said(prepared(frame), **options):
        assert not re.search(r"\d", text.replace("confidence=0.95", ""))
        assert "Huntington" not in text


def test_an_ordinary_fit_is_silent(frame):
    assert said(frame) == []
    # A column that says nothing about S is rightly released as it is.
    rng = np.random.default_rng(0)
    harmless = frame.assign(education=rng.permutation(frame["education"].to_numpy()))
    assert said(harmless, epsilon=0.2) == []


class TestColumnsThatArePassedThrough:
    def test_one_that_alone_says_too_much(self, frame):
        proxy = frame.assign(proxy=np.where(frame["sex"] == "f", "p", "q"))
        with pytest.warns(
            PrivacyLeakWarning, match=r"more about S on their own .*: income, proxy\."
        ):
            make(remainder="passthrough").fit(proxy)

    def test_one_that_cannot_be_judged_is_passed_through_all_the_same(self, frame):
        odd = frame[["sex", "education"]].assign(odd=[[1]] * N)
        with pytest.warns(PrivacyLeakWarning, match="odd reveal about S cannot be judged"):
            released = make(remainder="passthrough").fit_transform(odd)
        assert released["odd"].tolist() == [[1]] * N

    def test_it_is_judged_by_its_values_and_not_by_bins(self, frame):
        parity = np.random.default_rng(0).integers(0, 50, N) * 2 + (frame["sex"] == "f")
        with pytest.warns(PrivacyLeakWarning, match=r": income, parity\."):
            make(remainder="passthrough").fit(frame.assign(parity=parity))


def test_warnings_point_to_the_line_of_the_user(frame):
    with pytest.warns(PrivacyLeakWarning) as caught:
        make(epsilon=5.0).fit(frame)
    assert caught[0].filename == __file__
    with pytest.warns(PrivacyLeakWarning) as caught:
        make(sensitive=None).fit(frame, frame["sex"])
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="did not see") as caught:
        make().fit(frame).transform(frame.assign(education="guru"))
    assert caught[0].filename == __file__


def test_a_constant_s_is_released_as_it_is(frame):
    with pytest.warns(PrivacyLeakWarning, match="nothing to protect"):
        released = make().fit_transform(frame.assign(sex="f"))
    assert isinstance(released, pd.DataFrame)
    assert released["education"].equals(frame["education"])
