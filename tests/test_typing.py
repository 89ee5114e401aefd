import inspect
import re
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import pytest

import skprivacy
from skprivacy import datasets, exceptions, files, metrics

ROOT = Path(__file__).parents[1]

RIGHT = """
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from skprivacy import Mechanism, compare_mechanisms, design_mechanism
from skprivacy.measures import KL, Measure
from skprivacy.utilities import Target
from skprivacy import PrivacyUtilityDisplay, privacy_utility_path
from skprivacy.budgets import mechanism_for_utility
from skprivacy.solvers import OptimalSolver
from skprivacy import PrivacyFunnelTransformer, PrivacyReport
from skprivacy.datasets import load_diabetes_bands, load_diabetes_joint, load_diabetes_patients
from skprivacy.files import fit_file, transform_file
from skprivacy.metrics import (
    leakage,
    leakage_per_output,
    neg_leakage_scorer,
    population_leakage,
)


class Hellinger(Measure):
    def value(
        self, posterior: npt.NDArray[np.float64], prior: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        roots: npt.NDArray[np.float64] = np.sqrt(posterior) - np.sqrt(prior)
        return np.asarray((roots**2).sum(axis=-1) / 2)

    def subgradient(
        self, posterior: npt.NDArray[np.float64], prior: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        return np.asarray((1 - np.sqrt(prior / np.maximum(posterior, 1e-12))) / 2)

    def threshold(self, epsilon: float) -> float:
        return epsilon**2

    def inverse(self, value: npt.NDArray[np.float64] | float) -> npt.NDArray[np.float64]:
        return np.asarray(np.sqrt(value))


joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
mechanism = design_mechanism(joint, 0.02, measure=Hellinger(), scope="average")
kept: float = mechanism.normalized_utility
outputs: int = mechanism.channel.shape[1]
if mechanism.p_sx is not None:
    groups: int = len(mechanism.p_sx)
again: Mechanism = Mechanism.from_json(mechanism.to_json(), measure=Hellinger())
path: list[Mechanism] = privacy_utility_path(load_diabetes_joint(), np.geomspace(0.01, 1, 3))
PrivacyUtilityDisplay.from_path({"optimal": path}, chosen=0.1)
table: pd.DataFrame = compare_mechanisms(joint, (0.1, 1), [OptimalSolver(tol=1e-3), "watchdog"])
enough = mechanism_for_utility(np.array(joint), 0.9, measure=KL(), utility=Target([[1, 0, 1], [0, 1, 1]]))
limit: float = population_leakage(enough, n_samples=100).max_leakage
average: float = leakage(["a", "b"], pd.Series([0, 1]))
each: pd.Series = leakage_per_output(pl.Series(["a", "b"]), pl.DataFrame({"y": [0, 1]}))
score: float = neg_leakage_scorer("l1", scope="average")(None, None)
bands: pd.DataFrame = load_diabetes_bands(n_bands=3)
heaviest: float = load_diabetes_patients()["bmi"].max()
funnel = PrivacyFunnelTransformer(0.1, sensitive="sex", columns=["bmi"], n_bins={"bmi": [0, 9.5]})
fitted: PrivacyFunnelTransformer = funnel.fit(bands, sample_weight=np.ones(442))
PrivacyFunnelTransformer(measure=Hellinger(), columns=lambda frame: frame.columns[1:], n_bins=None)
PrivacyFunnelTransformer(sensitive=0, n_bins=np.arange(3), random_state=np.random.RandomState(0))
fitted.fit(pl.DataFrame({"x": [0, 1]}), sensitive_features=pl.Series(["a", "b"])).transform([[0]])
fitted.evaluate(bands).max_leakage.is_integer()
fitted.certify(bands, confidence=0.9).max_leakage_bound.is_integer()
cells: tuple[int, ...] = fitted.p_sx_.shape
names: list[str] = PrivacyFunnelTransformer.from_json(fitted.to_json()).get_feature_names_out().tolist()
PrivacyReport.from_estimator(fitted, bands).save("report.html")
rows: int = transform_file(fit_file(funnel, "in.csv"), Path("in.csv"), "out.parquet", force=True)
"""

WRONG = """
from skprivacy import Mechanism, design_mechanism
from skprivacy.budgets import mechanism_for_utility
from skprivacy.solvers import OptimalSolver
from skprivacy import PrivacyFunnelTransformer
from skprivacy import PrivacyReports  # attr-defined
from skprivacy.files import fit_file, transform_file
from skprivacy.metrics import leakage

design_mechanism([[1, 2], [2, 1]], 0.1, scope="per_row")  # call-overload
design_mechanism([[1, 2], [2, 1]], "0.1")  # call-overload
mechanism_for_utility([[1, 2], [2, 1]], utility=0.9)  # call-overload
mechanism = design_mechanism([[1, 2], [2, 1]], 0.1)
mechanism.leakage_of("average")  # attr-defined
mechanism.leakage_in("worst")  # arg-type
mechanism.p_sx.sum()  # union-attr
OptimalSolver(start="algorithm2")  # arg-type
leakage([0, 1], [0, 1], scope="per_row")  # arg-type
name: str = leakage([0, 1], [0, 1])  # assignment
Mechanism.from_json(mechanism.to_json(), measure="kl")  # arg-type
PrivacyFunnelTransformer(output="labels")  # arg-type
PrivacyFunnelTransformer(sensitive=0.5)  # arg-type
PrivacyFunnelTransformer(epsilon="0.1")  # arg-type
PrivacyFunnelTransformer(sensitve="sex")  # call-arg
PrivacyFunnelTransformer().mechanism_.max_leakge  # union-attr
fit_file(mechanism, "patients.csv")  # arg-type
transform_file(PrivacyFunnelTransformer(), "patients.csv")  # call-arg
"""

# What is wrong in the package itself is not the user's: mypy is run on it by itself. Nor are these
# libraries in what the user writes here; reading them would take longer than all the rest.
OPTIONS = """
[mypy]
strict = True
follow_imports = silent
pretty = False

[mypy-dask.*,distributed.*,hypothesis.*,jinja2.*,matplotlib.*,narwhals.*,PIL.*,pyspark.*]
follow_imports = skip
follow_imports_for_stubs = True
"""


def public_objects():
    for module in (skprivacy, metrics, datasets, exceptions, files):
        own = [name for name, value in vars(module).items() if is_from(value, module.__name__)]
        for name in getattr(module, "__all__", own):
            if not name.startswith("_"):
                yield f"{module.__name__}.{name}", getattr(module, name)


def is_from(value, module):
    return callable(value) and getattr(value, "__module__", None) == module


def functions_of(name, value):
    """Functions, methods and properties that somebody wrote, by name."""
    if not inspect.isclass(value):
        yield name, value
        return
    for cls in value.__mro__:
        if not cls.__module__.startswith("skprivacy"):
            continue
        for attribute, member in vars(cls).items():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(member, cached_property):
                function = member.func
            is_public = not attribute.startswith("_") or attribute == "__init__"
            if is_public and inspect.isfunction(function):
                yield f"{name}.{attribute}", function


@pytest.mark.parametrize(
    ("name", "value"), [pytest.param(*pair, id=pair[0]) for pair in public_objects()]
)
def test_public_names_have_complete_hints(name, value):
    for called, function in functions_of(name, value):
        signature = inspect.signature(function)
        assert signature.return_annotation is not signature.empty, called
        for parameter in signature.parameters.values():
            if parameter.name not in ("self", "cls"):
                assert parameter.annotation is not parameter.empty, (called, parameter.name)


def test_the_package_says_that_it_has_hints():
    assert (Path(skprivacy.__file__).parent / "py.typed").exists()


@pytest.mark.slow
def test_a_type_checker_tells_right_programs_from_wrong_ones(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    files = [tmp_path / "right.py", tmp_path / "wrong.py"]
    (tmp_path / "mypy.ini").write_text(OPTIONS)
    options = [f"--config-file={tmp_path / 'mypy.ini'}"]
    options += [f"--cache-dir={ROOT / '.mypy_cache' / 'user'}"]  # its own, as its options are
    command = [sys.executable, "-m", "mypy", *options, *files]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    found = re.findall(r"(\w+)\.py:(\d+): error: .*\[([a-z-]+)\]", run.stdout)
    expected = [
        ("wrong", str(number), line.split("# ")[1])
        for number, line in enumerate(WRONG.splitlines(), 1)
        if "# " in line
    ]
    assert found == expected, run.stdout + run.stderr
