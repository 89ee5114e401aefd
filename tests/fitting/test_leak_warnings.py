"""What a user of a release is warned of."""

import numpy as np
import pandas as pd
import pytest
from example_tables import N, make

from skprivacy import (
    PrivacyLeakWarning,
)


class TestWarnings:
    def check(self, table, text, **options):
        with pytest.warns(PrivacyLeakWarning, match=text):
            make(**options).fit(table)

    def test_small_groups_are_counted_and_not_named(self, frame):
        rare = frame.assign(sex=frame["sex"].where(frame.index > 5, "Huntington"))
        with pytest.warns(PrivacyLeakWarning) as caught:
            make().fit(rare)
        (text,) = (str(warning.message) for warning in caught)
        assert "1 of the 3 sensitive groups has fewer rows than X has symbols (4), 2 rows" in text
        assert "Huntington" not in text

    def test_x_unchanged(self, frame):
        self.check(frame, "No noise is added to X: epsilon=5 is large enough", epsilon=5.0)

    def test_output_constant(self):
        table = pd.DataFrame({"sex": list("ab") * 500, "education": list("uvuvuvuvuu") * 100})
        self.check(table, "constant or says nothing", epsilon=0.0)

    def test_x_determines_s(self, frame):
        self.check(frame.assign(education=frame["sex"]), "X determines S")

    def test_a_column_passed_through_that_alone_says_too_much(self, frame):
        proxy = frame.assign(proxy=np.where(frame["sex"] == "f", "p", "q"))
        self.check(proxy, r"(?s)more about S on their own.*\nproxy +0.72", remainder="passthrough")

    def test_a_column_that_cannot_be_judged_is_passed_through_all_the_same(self, frame):
        odd = frame[["sex", "education"]].assign(odd=[[1]] * N)
        with pytest.warns(PrivacyLeakWarning, match=r"\['odd'\] reveal about S cannot be judged"):
            released = make(remainder="passthrough").fit_transform(odd)
        assert released["odd"].tolist() == [[1]] * N

    def test_a_column_is_judged_by_its_values_and_not_by_bins(self, frame):
        parity = np.random.default_rng(0).integers(0, 50, N) * 2 + (frame["sex"] == "f")
        self.check(frame.assign(parity=parity), r"\nparity +0\.", remainder="passthrough")

    def test_warnings_point_to_the_line_of_the_user(self, frame):
        with pytest.warns(PrivacyLeakWarning) as caught:
            make(epsilon=5.0).fit(frame)
        assert caught[0].filename == __file__
        with pytest.warns(PrivacyLeakWarning) as caught:
            make(sensitive=None).fit(frame, frame["sex"])
        assert caught[0].filename == __file__
        with pytest.warns(UserWarning, match="did not see") as caught:
            make().fit(frame).transform(frame.assign(education="guru"))
        assert caught[0].filename == __file__

    def test_constant_s(self, frame):
        constant = frame.assign(sex="f")
        with pytest.warns(PrivacyLeakWarning, match="single value: there is nothing to protect"):
            released = make().fit_transform(constant)
        assert released["education"].equals(frame["education"])
