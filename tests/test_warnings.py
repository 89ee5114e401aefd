"""Every warning points at the line of who called."""

import ast
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skprivacy
from skprivacy import (
    PrivacyFunnelTransformer,
    PrivacyLeakWarning,
    compare_mechanisms,
    design_mechanism,
    privacy_utility_path,
)
from skprivacy._messages import warn
from skprivacy.budgets import mechanism_for_utility
from skprivacy.files import fit_file, transform_file
from skprivacy.metrics import utility_scorer

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"sex": list("mf") * 300, "band": RNG.choice(list("uvw"), 600)})
OTHER = FRAME.assign(band="x")
JOINT = np.random.default_rng(0).random((5, 12))
LATE = {"solver": "optimal", "solver_options": {"max_time": 0}}
QUICK = {"solver": "column_generation", "solver_options": {"max_time": 0}}


def funnel(**options):
    """Return a transformer with a budget so large that `fit` warns."""
    return PrivacyFunnelTransformer(**({"epsilon": 5.0, "sensitive": "sex"} | options))


def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return funnel().fit(FRAME)


def counted():
    return funnel().partial_fit(FRAME[:300]).partial_fit(FRAME[300:])


def searched(n_jobs=None):
    scoring = utility_scorer()
    return GridSearchCV(funnel(), {"epsilon": [5.0, 6.0]}, scoring=scoring, cv=2, n_jobs=n_jobs)


# Each call in one line, so that its line is that of the warning.
CALLS = {
    "fit": lambda: funnel().fit(FRAME),
    "fit to an array": lambda: funnel(sensitive=0).fit(FRAME.to_numpy()),
    "fit with y": lambda: funnel(sensitive=None, epsilon=0.01).fit(FRAME[["band"]], FRAME["sex"]),
    "fit_transform": lambda: funnel().fit_transform(FRAME),
    "a pipeline": lambda: make_pipeline(funnel()).fit(FRAME),
    "fit_transform of a pipeline": lambda: make_pipeline(funnel(), "passthrough").fit_transform(FRAME),
    "a column transformer": lambda: ColumnTransformer([("f", funnel(), ["sex", "band"])]).fit(FRAME),
    "a search": lambda: searched().fit(FRAME),
    "a comprehension": lambda: [funnel(epsilon=e).fit(FRAME) for e in (5.0, 6.0)],
    "partial_fit and mechanism_": lambda: counted().mechanism_,
    "partial_fit and transform": lambda: counted().transform(FRAME),
    "transform": lambda: fitted().transform(OTHER),
    "transform in a pipeline": lambda: make_pipeline(fitted(), "passthrough").transform(OTHER),
    "transform of an array": lambda: fitted().transform(FRAME.to_numpy()),
    "design_mechanism": lambda: design_mechanism(JOINT, 0.05, measure="chi2", **LATE),
    "privacy_utility_path": lambda: privacy_utility_path(JOINT, [0.05], measure="chi2", **LATE),
    "compare_mechanisms": lambda: compare_mechanisms(JOINT, [0.05], [skprivacy.solvers.OptimalSolver(max_time=0)]),
    "column generation": lambda: design_mechanism(JOINT, 0.05, **QUICK),
    "mechanism_for_utility": lambda: mechanism_for_utility(JOINT, 0.5, **QUICK),
    "fit_file": lambda: fit_file(funnel(), "in.csv"),
    "transform_file": lambda: transform_file(fitted().set_params(handle_unknown="resample"), "other.csv", "out.csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_is_at_the_users_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("in.csv", index=False)
    OTHER.to_csv("other.csv", index=False)
    call = CALLS[name]
    with warnings.catch_warnings(record=True, action="always") as caught:
        call()
    assert {warning.filename for warning in caught} == {__file__}
    assert {warning.lineno for warning in caught} == {call.__code__.co_firstlineno}


def test_a_search_with_workers_does_not_fail():
    with pytest.warns(PrivacyLeakWarning) as caught:
        search = searched(n_jobs=2).fit(FRAME)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert caught[-1].filename == __file__  # the refit, which is not a worker's


def test_a_thread_without_a_line_of_the_user():
    fits = threading.Thread(target=funnel().fit, args=(FRAME,))
    with warnings.catch_warnings(record=True, action="always") as caught:
        fits.start()
        fits.join()
    assert {warning.filename for warning in caught} == {threading.__file__}


def module(source, **names):
    """Return the globals of a module of a user, run."""
    names = {"__name__": "somebody.analysis", "warn": warn, **names}
    exec(compile(source, "analysis.py", "exec"), names)
    return names


def test_once_for_each_line_as_of_any_other_warning(recwarn):
    warnings.simplefilter("default")
    module("for _ in range(3):\n    warn('a')\n    warn('b')\nwarn('a')\n")
    said = [(warning.lineno, str(warning.message)) for warning in recwarn]
    assert said == [(2, "a"), (3, "b"), (4, "a")]


def test_filters_name_the_module_of_the_user(recwarn):
    warnings.filterwarnings("ignore", module=r"somebody\.analysis")
    module("warn('unheard')")
    module("warn('heard')", __name__="somebody.else")
    module("del __name__\nwarn('from nowhere')")
    assert [str(warning.message) for warning in recwarn] == ["heard", "from nowhere"]
    warnings.filterwarnings("error", category=ConvergenceWarning, module="somebody")
    with pytest.raises(ConvergenceWarning, match="late"):
        module("warn('late', category)", category=ConvergenceWarning)


def test_a_line_of_a_user_between_lines_of_ours():
    names = module("def call(f):\n    f()\n")
    ours = module("def outer(call):\n    call(inner)\ndef inner():\n    warn('here')\n",
                  __name__="skprivacy.somewhere")  # fmt: skip
    with pytest.warns(UserWarning, match="here") as caught:
        ours["outer"](names["call"])
    assert caught[0].lineno == 2
    assert caught[0].filename == "analysis.py"


def test_no_other_module_warns_by_itself():
    package = Path(skprivacy.__file__).parent
    for path in package.rglob("*.py"):
        calls = [n.func for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        named = {ast.unparse(call) for call in calls}
        warns = {name for name in named if name.startswith("warnings.warn")}
        expected = {"warnings.warn_explicit"} if path.name == "_messages.py" else set()
        assert warns == expected, path
        assert "stacklevel" not in path.read_text(), path


SEARCH = """
import sys

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from skprivacy import PrivacyFunnelTransformer

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    sex = rng.choice(["m", "f"], 300)
    band = np.where(rng.random(300) < 0.5, sex, rng.choice(list("uvwxyz"), 300))
    job = rng.choice([f"job {i}" for i in range(40)], 300)
    frame = pd.DataFrame({"sex": sex, "band": band, "job": job, "age": rng.normal(50, 9, 300)})
    funnel = PrivacyFunnelTransformer(sensitive="sex", columns=sys.argv[2:])
    pipeline = make_pipeline(funnel, OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    budgets = {"privacyfunneltransformer__epsilon": [0.01, 0.02, 0.05, 0.1]}
    search = GridSearchCV(pipeline, budgets, cv=5, n_jobs=int(sys.argv[1]))
    search.fit(frame, rng.random(300) < 0.3 + 0.3 * (band == "u"))
"""


@pytest.mark.parametrize("columns", [["band"], ["band", "job"], ["age", "band"]])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_warns_once(tmp_path, columns, n_jobs):
    """In a process of its own: with the filters that Python has by default."""
    script = tmp_path / "search.py"
    script.write_text(SEARCH)
    run = [sys.executable, script, str(n_jobs), *columns]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert len(lines) <= 1
    # Workers are silent, and the last fit is to all rows, by a budget that chance decides.
    assert n_jobs > 1 or "FiniteSampleWarning" in lines[0]


def test_notices_are_for_those_who_ask():
    """Values that `fit` did not see threaten nothing: no filter, no word."""
    code = "from skprivacy._messages import Notice, warn; import warnings\nwarn('a', Notice)\n"
    code += "warnings.simplefilter('default', Notice)\nwarn('b', Notice)"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stderr == "<string>:4: Notice: b\n"


class TestOnce:
    """Shown once for a line, though others enter `catch_warnings` in between."""

    LOOP = "for _ in range(3):\n    with warnings.catch_warnings():\n        warn('a')\n"

    def test_by_default(self, recwarn):
        warnings.simplefilter("default")
        module(self.LOOP, warnings=warnings, __name__="somebody.once")
        assert len(recwarn) == 1

    def test_always_where_that_is_asked_for(self, recwarn):
        warnings.simplefilter("always")
        module(self.LOOP, warnings=warnings, __name__="somebody.always")
        assert len(recwarn) == 3

    def test_where_filters_have_become_others(self):
        names = module("def call():\n    for _ in range(3):\n        warn('a')\n", __name__="somebody.strict")  # fmt: skip
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            names["call"]()
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="a"):
                names["call"]()

    def test_again_where_the_registry_is_a_new_one(self, recwarn):
        """As in every cell of a notebook that is run again."""
        warnings.simplefilter("default")
        names = module("def call():\n    warn('a')\n", __name__="somebody.notebook")
        for _ in range(2):
            names.pop("__warningregistry__", None)
            names["call"]()
        assert len(recwarn) == 2
