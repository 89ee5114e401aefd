"""Values that fit did not see."""

import warnings

import pandas as pd
import pytest
from example_tables import make, quiet_fit
from numpy.testing import assert_allclose

from skprivacy._messages import Notice
from skprivacy.fitting.fitted_estimator import fitted_of


class TestUnknownValues:
    def test_resample_draws_from_p_y_and_counts(self, frame):
        transformer = make().fit(frame)
        strange = pd.DataFrame({"education": ["college"] * 10 + ["guru"] * 200_000})
        with (
            pytest.warns(Notice, match=r"draws from P\(Y\): 'education'\."),
            pytest.warns(UserWarning, match=r"100% of the rows are drawn.*'education' holds"),
        ):
            released = transformer.transform(strange)["education"].iloc[10:]
        share = released.value_counts(normalize=True)
        expected = pd.Series(transformer.mechanism_.p_y, index=transformer.mechanism_.y_labels)
        assert_allclose(share.reindex(expected.index, fill_value=0), expected, atol=5e-3)

    def test_a_few_unknown_rows_are_no_mistake(self, frame):
        transformer = make().fit(frame)
        for educations in (["guru"], ["guru"] * 50 + ["college"] * 50):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Notice)
                transformer.transform(pd.DataFrame({"education": educations}))

    def test_error_names_the_column_and_up_to_five_values(self, frame):
        transformer = make(handle_unknown="error").fit(frame)
        strange = pd.DataFrame({"education": [f"guru {i}" for i in range(9)]})
        with pytest.raises(
            ValueError, match="'education' during transform: 'guru 0', .* 'guru 4'. Use"
        ):
            transformer.transform(strange)

    def test_unseen_combinations(self, frame):
        seen = frame[~((frame["education"] == "phd") & (frame["city"] == "x"))]
        transformer = make(columns=["education", "city"]).fit(seen)
        with pytest.warns(UserWarning, match="combination of 'education', 'city'"):
            transformer.transform(frame)
        with pytest.raises(ValueError, match=r"combination of .*: \('phd', 'x'\)"):
            transformer.set_params(handle_unknown="error").transform(frame)

    @pytest.mark.parametrize("columns", [["income"], ["income", "city"], ["city", "income"]])
    def test_a_bin_that_was_empty_at_fit_is_unknown(self, frame, columns):
        edges = [0, 20000, frame["income"].max(), 1e9, 2e9]
        transformer = quiet_fit(make(columns=columns, n_bins=edges), frame)
        beyond = frame.assign(income=frame["income"].where(frame.index > 5, 1.5e9))
        symbols, unknown = fitted_of(transformer).alphabet.encode(
            [beyond[c] for c in columns], columns
        )
        assert unknown == {"income": 2}
        assert (symbols[:2] == -1).all()
        assert 0 <= symbols[2:].min() <= symbols.max() < len(transformer.mechanism_.x_labels)

    def test_outside_of_given_edges(self, frame):
        edges = [0, 20000, frame["income"].max()]
        transformer = make(columns=["income"], n_bins=edges).fit(frame)
        with pytest.warns(UserWarning, match="did not see.*: 'income'"):
            transformer.transform(frame.assign(income=frame["income"].where(frame.index > 0, 1e9)))
