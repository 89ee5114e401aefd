"""Mechanisms side by side."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from reference import EXAMPLE_1, THREE_BY_THREE
from sklearn.exceptions import ConvergenceWarning

from skprivacy import SolverError, compare_mechanisms, privacy_utility_path
from skprivacy.datasets import load_diabetes_joint
from skprivacy.measures import AlphaLift
from skprivacy.solvers import (
    SOLVERS,
    Algorithm1Solver,
    ColumnGenerationSolver,
    OptimalSolver,
    Solution,
    Solver,
)

COLUMNS = [
    "solver",
    "epsilon",
    "utility",
    "normalized_utility",
    "leakage",
    "worst_kl",
    "average_kl",
    "worst_l1",
    "average_l1",
    "worst_chi2",
    "average_chi2",
    "worst_max_lift",
    "average_max_lift",
    "worst_alpha_lift",
    "average_alpha_lift",
    "worst_lip",
    "worst_parity",
    "average_parity",
    "max_lift",
    "seconds",
    "outputs",
    "gap",
    "reason",
]


@dataclass(frozen=True)
class Broken(Solver):
    """Fails in the middle of its work."""

    error: type
    name: ClassVar[str] = "broken"

    def solve_path(self, task, epsilons):
        raise self.error("no luck today")
        yield


@dataclass(frozen=True)
class FailsAt(Solver):
    """Fails at one budget, and says nothing at the others."""

    epsilon: float
    name: ClassVar[str] = "fails_at"

    def solve_path(self, task, epsilons):
        for epsilon in epsilons:
            if epsilon == self.epsilon:
                raise SolverError("not this one")
            yield Solution(np.ones((len(task.joint.p_x), 1)))


@dataclass(frozen=True)
class Liar(Solver):
    """Says nothing about X, and that nothing says more."""

    name: ClassVar[str] = "liar"

    def solve_path(self, task, epsilons):
        for _ in epsilons:
            yield Solution(np.ones((len(task.joint.p_x), 1)), 0.0)


@dataclass(frozen=True)
class Leaky(Solver):
    """Releases X itself, whatever the budget."""

    name: ClassVar[str] = "leaky"

    def solve_path(self, task, epsilons):
        for _ in epsilons:
            yield Solution(np.eye(len(task.joint.p_x)))


class TestTable:
    @pytest.mark.parametrize("scope", ["per_output", "average"])
    @pytest.mark.parametrize("measure", ["kl", "chi2"])
    def test_a_row_is_what_a_path_gives(self, measure, scope):
        solvers = ["optimal", "algorithm1", "watchdog", "randomized_response"]
        problem = {"measure": measure, "scope": scope}
        table = compare_mechanisms(THREE_BY_THREE, [0.3, 0.05], solvers, **problem)
        assert table.columns.tolist() == COLUMNS
        assert table["solver"].tolist() == [name for name in solvers for _ in range(2)]
        assert table["epsilon"].tolist() == [0.3, 0.05] * 4
        assert table["reason"].isna().all()
        for row in table.itertuples():
            path = privacy_utility_path(THREE_BY_THREE, [0.05, 0.3], solver=row.solver, **problem)
            (mechanism,) = (m for m in path if m.epsilon == row.epsilon)
            assert row.utility == mechanism.utility
            assert row.normalized_utility == mechanism.normalized_utility
            assert row.max_lift == mechanism.max_lift
            assert row.leakage == mechanism.leakage_in(scope)
            assert row.outputs == mechanism.channel.shape[1]
            assert getattr(row, f"worst_{measure}") == mechanism.max_leakage
            assert getattr(row, f"average_{measure}") == mechanism.average_leakage
            assert_allclose(row.average_kl, mechanism.sensitive_information, atol=1e-14)
            assert_allclose(row.worst_max_lift, np.log(mechanism.max_lift))
            assert row.seconds > 0

    def test_every_budget_is_met(self):
        joint = load_diabetes_joint("bp", 7)
        for measure in ("l1", "chi2", AlphaLift(5), "max_lift"):
            for scope in ("per_output", "average"):
                table = compare_mechanisms(joint, [0.01, 0.1], measure=measure, scope=scope)
                failed = table["reason"].notna()
                assert set(table["solver"][failed]) <= {"chi2_design"}  # 2 x 7 is not square
                table = table[~failed]
                assert (table["leakage"] <= table["epsilon"] * (1 + 1e-9)).all()

    def test_by_default_all_that_serve_the_problem(self):
        table = compare_mechanisms(THREE_BY_THREE, [0.05])
        others = set(SOLVERS) - {
            "optimal",
            "column_generation",
            "one_per_label",
            "greedy_funnel",
            "chi2_design",
        }
        assert set(table["solver"]) == {"auto", *others}
        table = compare_mechanisms(EXAMPLE_1, [0.05], measure="chi2", scope="average")
        assert {"greedy_funnel", "chi2_design"} < set(table["solver"])
        assert table["reason"].isna().all()

    def test_what_auto_takes_is_not_there_twice(self):
        table = compare_mechanisms(THREE_BY_THREE, [0.05], measure="max_lift")
        assert "lift_polytope" not in set(table["solver"])

    def test_dtypes(self):
        table = compare_mechanisms(THREE_BY_THREE, [0.05], ["watchdog"])
        text, whole = ["solver", "reason"], "outputs"
        assert all(pd.api.types.is_string_dtype(table[name]) for name in text)
        assert pd.api.types.is_integer_dtype(table[whole])
        floats = table.drop(columns=[*text, whole])
        assert all(pd.api.types.is_float_dtype(dtype) for dtype in floats.dtypes)

    def test_one_proof_serves_all(self):
        table = compare_mechanisms(THREE_BY_THREE, [0.05, 0.3], ["watchdog", "optimal"])
        best = table[table["solver"] == "optimal"].set_index("epsilon")
        assert (best["gap"] <= 1e-5 * np.log(3)).all()
        for row in table[table["solver"] == "watchdog"].itertuples():
            bound = best.loc[row.epsilon, "utility"] + best.loc[row.epsilon, "gap"]
            assert_allclose(row.gap, bound - row.utility, atol=1e-12)
        # Alone it proves nothing.
        alone = compare_mechanisms(THREE_BY_THREE, [0.05], ["watchdog"])
        assert_allclose(alone["gap"], np.log(3) - alone["utility"])

    def test_a_proof_that_another_solver_refutes_is_none(self):
        table = compare_mechanisms(THREE_BY_THREE, [0.3], [Liar(), "randomized_response"])
        assert_allclose(table["gap"], np.log(3) - table["utility"])

    def test_the_parameters_of_the_measure_are_kept(self):
        table = compare_mechanisms(THREE_BY_THREE, [0.1], ["auto"], measure=AlphaLift(5))
        assert_allclose(table["worst_alpha_lift"], 0.1, rtol=1e-8)

    def test_other_utilities(self):
        table = compare_mechanisms(THREE_BY_THREE, [0.1], ["optimal"], utility="guess")
        assert_allclose(table["utility"], 0.70384982, atol=1e-5)

    def test_objects_and_names_of_ones_own(self):
        solvers = {"window": "algorithm1", "all": Algorithm1Solver(candidates="all")}
        table = compare_mechanisms(THREE_BY_THREE, [0.1], solvers).set_index("solver")
        assert table.index.tolist() == ["window", "all"]
        assert table.loc["window", "utility"] <= table.loc["all", "utility"]
        table = compare_mechanisms(THREE_BY_THREE, [0.1], [OptimalSolver(tol=1e-7)])
        assert table["solver"].tolist() == ["optimal"]
        names = (name for name in ["watchdog", "subset_merging"])
        table = compare_mechanisms(THREE_BY_THREE, np.array([0.1, 0.2]), names)
        assert len(table) == 4

    def test_progress(self, capsys):
        compare_mechanisms(THREE_BY_THREE, [0.1, 0.2], ["watchdog"], verbose=True)
        assert "2/2" in capsys.readouterr().err
        compare_mechanisms(THREE_BY_THREE, [0.1, 0.2], ["watchdog"])
        assert capsys.readouterr().err == ""


class TestFailures:
    @pytest.mark.parametrize("error", [SolverError, ValueError, ZeroDivisionError, MemoryError])
    def test_one_does_not_hide_the_others(self, error):
        table = compare_mechanisms(THREE_BY_THREE, [0.05], [Broken(error), "watchdog"])
        assert table["reason"][0] == f"{error.__name__}: no luck today"
        figures = ["utility", "worst_kl", "max_lift", "outputs", "gap"]
        assert table.loc[0, figures].isna().all()
        assert table.loc[1, figures].notna().all()
        assert pd.isna(table["reason"][1])

    def test_a_mechanism_over_its_budget_is_a_failure(self):
        table = compare_mechanisms(THREE_BY_THREE, [0.05], [Leaky()])
        assert "which rounding cannot explain" in table["reason"][0]
        assert table["utility"].isna().all()

    def test_reasons_of_our_own_solvers(self):
        joint = np.random.default_rng(0).random((5, 40))
        solvers = ["algorithm1", "best_partition", "chi2_design", "greedy_funnel", "watchdog"]
        table = compare_mechanisms(joint, [0.1], solvers).set_index("solver")["reason"]
        assert "max_bases" in table["algorithm1"]
        assert "max_symbols=10" in table["best_partition"]
        assert "needs measure='chi2'" in table["chi2_design"]
        assert "compare_mechanisms got measure=KL(), scope='per_output'" in table["greedy_funnel"]
        assert pd.isna(table["watchdog"])

    def test_it_may_fail_at_some_budgets_only(self):
        table = compare_mechanisms(EXAMPLE_1, [0.05, 0.5], ["chi2_design"], measure="chi2")
        assert table["reason"].isna().tolist() == [True, False]

    def test_it_goes_on_after_a_failure(self):
        epsilons = [0.3, 0.1, 0.2, 0.1]
        table = compare_mechanisms(THREE_BY_THREE, epsilons, [FailsAt(0.1)])
        assert table["epsilon"].tolist() == epsilons
        assert table["reason"].isna().tolist() == [True, False, True, False]

    def test_warnings_point_at_the_caller(self):
        joint = np.random.default_rng(0).random((5, 12))
        solvers = [OptimalSolver(max_time=0), ColumnGenerationSolver(max_time=0)]
        with pytest.warns(ConvergenceWarning) as caught:
            compare_mechanisms(joint, [0.05], solvers)
        assert [warning.filename for warning in caught] == [__file__] * 2

    @pytest.mark.parametrize(
        ("arguments", "options", "error", "text"),
        [
            ((THREE_BY_THREE, [0.1], ["optimum"]), {}, ValueError, "'solvers' .* Got 'optimum'"),
            ((THREE_BY_THREE, [0.1], "optimal"), {}, TypeError, "a list or a dict of solvers"),
            ((THREE_BY_THREE, [0.1], []), {}, ValueError, "at least one solver"),
            ((THREE_BY_THREE, [0.1], [OptimalSolver]), {}, TypeError, r"write OptimalSolver\(\)"),
            ((THREE_BY_THREE, [0.1], [3]), {}, TypeError, "'solvers' .* Got 3 "),
            ((THREE_BY_THREE, [0.1], {1: "optimal"}), {}, TypeError, "with names as keys. Got 1 "),
            (
                (THREE_BY_THREE, [0.1], ["optimal", OptimalSolver()]),
                {},
                ValueError,
                "has 'optimal' more than once: pass a dict",
            ),
            ((THREE_BY_THREE, [-1]), {}, ValueError, "'epsilons' .* Got -1"),
            ((THREE_BY_THREE, 0.1), {}, TypeError, "'epsilons' .* a sequence of floats"),
            (([[1, -1]], [0.1]), {}, ValueError, "'p_sx' parameter of compare_mechanisms"),
            ((THREE_BY_THREE, [0.1]), {"measure": "ldp"}, ValueError, "'measure'"),
            ((THREE_BY_THREE, [0.1]), {"measure": "lip", "scope": "average"}, ValueError, "scope"),
        ],
    )
    def test_mistakes_of_the_caller_are_errors(self, arguments, options, error, text):
        with pytest.raises(error, match=text):
            compare_mechanisms(*arguments, **options)
