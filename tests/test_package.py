import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from scripts import run_script

import skprivacy
from skprivacy import datasets, files, solvers
from skprivacy.datasets import load_diabetes_joint

PACKAGE = Path(skprivacy.__file__).parent
ROOT = Path(__file__).parents[1]


def test_the_public_names_are_there_and_sorted():
    assert all(hasattr(skprivacy, name) for name in skprivacy.__all__)
    # The linter's order: constants, classes, functions.
    kinds = [(not n.isupper(), not n[0].isupper(), n) for n in skprivacy.__all__]
    assert kinds == sorted(kinds)


def test_names_are_imported_from_where_type_checkers_are_told():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (told,) = [n.body for n in tree.body if isinstance(n, ast.If) and isinstance(n.test, ast.Name)]
    told = {node.module: [alias.name for alias in node.names] for node in told}
    assert told == skprivacy._NAMES
    assert sorted(skprivacy._MODULES) == sorted(skprivacy.__all__) == dir(skprivacy)


LAZY = """
import sys
import skprivacy
assert not [name for name in sys.modules if name.startswith("skprivacy.")]
assert "numpy" not in sys.modules
assert skprivacy.metrics.audit is skprivacy.audit  # a module, a name
assert "audit" in vars(skprivacy)  # found once
from skprivacy import datasets
from skprivacy.measures import KL
names = {}
exec("from skprivacy import *", names)
assert set(skprivacy.__all__) <= set(names)
print(*sys.modules)
import skprivacy.files
assert skprivacy.files.fit_file and skprivacy.cli.main and KL is skprivacy.measures.KL
assert not hasattr(skprivacy, "nothing") and not hasattr(skprivacy, "__main__")
try:
    skprivacy.PrivacyFunelTransformer
except AttributeError as error:
    assert str(error) == "module 'skprivacy' has no attribute 'PrivacyFunelTransformer'"
"""


@pytest.fixture(scope="module")
def imported():
    """Return what a new Python has imported with all of the package."""
    command = [sys.executable, "-W", "error", "-c", LAZY]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def test_names_are_imported_when_they_are_used(imported):
    assert {"skprivacy.transformer", "skprivacy.metrics"} <= set(imported)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *[("skprivacy", name) for name in skprivacy.__all__],
        *[("skprivacy.metrics", name) for name in skprivacy.metrics.__all__],
        *[("skprivacy.solvers", name) for name in solvers.__all__],
        *[("skprivacy.files", name) for name in files.__all__],
        *[("skprivacy.datasets", name) for name in vars(datasets) if name.startswith("load_")],
    ],
)
def test_public_names_have_an_example(module, name):
    _, _, examples = getattr(sys.modules[module], name).__doc__.partition("Examples\n")
    assert ">>>" in examples


@pytest.mark.parametrize(
    "library", ["cdd", "matplotlib", "polars", "dask", "pyspark", "pyarrow.parquet"]
)
def test_importing_does_not_import_what_is_optional(library, imported):
    assert "skprivacy.transformer" in imported
    assert library not in imported


def test_only_the_second_engine_needs_cdd(monkeypatch):
    monkeypatch.setitem(sys.modules, "cdd", None)  # as if it were not installed
    joint, options = [[3, 1, 2], [1, 3, 1], [1, 1, 4]], {"measure": "max_lift"}
    skprivacy.design_mechanism(joint, 0.1, solver="lift_polytope", **options)
    second = solvers.LiftPolytopeSolver(engine="cdd")
    with pytest.raises(ImportError, match=r"engine='cdd' .*\[cdd\].* engine='parametric'"):
        skprivacy.design_mechanism(joint, 0.1, solver=second, **options)


def test_what_is_installed_by_default_has_no_cdd():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not any("cdd" in requirement for requirement in project["dependencies"])
    assert project["optional-dependencies"]["cdd"] == ["pycddlib-standalone>=3.0"]
    # Nor do the tests need a compiler; CI installs it, and compares our vertices with those of cdd.
    assert not any(
        "cdd" in requirement for requirement in project["optional-dependencies"]["test"]
    )


@pytest.mark.parametrize(
    ("script", "tables"),
    [
        pytest.param(["figure_1.py", "--joints", "1", "--jobs", "1"], 3, marks=pytest.mark.slow),
        pytest.param(["figure_2.py", "--joints", "1", "--jobs", "1"], 6, marks=pytest.mark.slow),
        (["figure_3.py"], 3),
        pytest.param(["which_mechanism.py"], 1, marks=pytest.mark.slow),  # another table is below
        (["correlation_remover.py", "--rows", "2000"], 1),
    ],
    ids=["figure_1", "figure_2", "figure_3", "which_mechanism", "correlation_remover"],
)
def test_the_examples_run(script, tables, tmp_path, capsys):
    run_script(f"examples/{script[0]}", *script[1:], "--output", tmp_path)
    said, shown = capsys.readouterr()
    name = Path(script[0]).stem
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    written = [pd.read_csv(path) for path in tmp_path.glob(f"{name}*.csv")]
    assert len(written) == tables
    assert all(len(table) >= (3 if name == "correlation_remover" else 78) for table in written)
    assert "Wrote" in said
    assert "100%" in shown  # a progress bar


def test_removing_a_correlation_gives_a_discrete_column_away(tmp_path):
    run_script("examples/correlation_remover.py", "--rows", "4000", "--output", tmp_path)
    right = pd.read_csv(tmp_path / "correlation_remover.csv", index_col=0)["attacker is right"]
    assert 0.77 < right["as it is"] < 0.84
    assert right["CorrelationRemover"] == 1.0
    assert right["PrivacyFunnel, epsilon 0.02"] < 0.5 + 0.1 + 0.03  # Pinsker, and chance


def test_the_comparison_of_a_table_of_ones_own(tmp_path, capsys):
    rows = pd.DataFrame({"s": list("aabb") * 30, "x": list("uvwvuw") * 20})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    command = ["examples/which_mechanism.py", "--table", tmp_path / "rows.csv"]
    command += ["--output", tmp_path]
    with pytest.raises(SystemExit) as exited:
        run_script(*command)
    assert exited.value.code == 2
    assert "--table, --sensitive and --column go together" in capsys.readouterr().err
    run_script(*command, "--sensitive", "s", "--column", "x")
    said, shown = capsys.readouterr()
    assert "2 groups of S, 3 symbols of X" in said
    assert "Wrote" in said
    assert "100%" in shown
    assert (tmp_path / "which_mechanism.png").stat().st_size > 10_000
    assert len(pd.read_csv(tmp_path / "which_mechanism.csv")) == 16 * (7 + 8)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # one joint has no standard error
@pytest.mark.parametrize(
    ("script", "text"),
    [
        (["algorithm1_path.py", "--joints", "1", "--budgets", "20"], "x faster"),
        (
            ["certified_optimum.py", "--joints", "1", "--parts", "local"],
            "0.502854 nats, at most 0.50285",
        ),
        pytest.param(
            ["certified_optimum.py", "--joints", "1", "--parts", "designs", "path", "gains"],
            "smallest gain of any joint: ",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            [
                "rows_per_second.py",
                "--rows",
                "20000",
                "--repeats",
                "1",
                "--most-groups",
                "2",
                "--most-symbols",
                "16",
            ],
            "fit without design, string / factorize both",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["overheads.py", "--rows", "100000", "--file-rows", "20000", "--repeats", "1"],
            "A Parquet file of 20,000 rows and 9 columns",
            marks=pytest.mark.slow,
        ),
        (["simple_mechanisms.py", "--joints", "1"], "5 x 200:"),
        pytest.param(
            ["one_per_label.py", "--cases", "1", "--series", "1", "--most-symbols", "8"],
            "3 x 8, average, mechanism_for_utility: warm ",
            marks=pytest.mark.slow,
        ),
        (
            ["population_limits.py", "--samples", "20", "--cell", "3", "--cell", "5"],
            "rare_group(0.02, 5)      1000  lip        1.000 [0.684, 1.000]",
        ),
        (["speed_of_confidence.py", "--tables", "1", "--cases", "4 x 7"], "\n4 x 7   "),
        (["random_beside.py", "--designs", "8"], "\n0 designs break a promise"),
        pytest.param(
            ["grid_search.py", "--rows", "200"],
            "\nScoreCells             200",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["commands.py", "--rows", "300", "--commands", "sanitize", "--confidences", "none"],
            "\nsanitize                              none",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["cells.py", "--rows", "1000", "--columns", "4"],
            "\nScoreCells        4  floats, integers, categories",
            marks=pytest.mark.slow,
        ),
    ],
    ids=[
        "algorithm1_path",
        "certified_optimum",
        "algorithm_1_and_the_optimum",
        "rows_per_second",
        "overheads",
        "simple_mechanisms",
        "one_per_label",
        "population_limits",
        "speed_of_confidence",
        "random_beside",
        "grid_search",
        "commands",
        "cells",
    ],
)
def test_the_benchmarks_run(script, text, capsys):
    run_script(f"benchmarks/{script[0]}", *script[1:])
    assert text in capsys.readouterr().out


@pytest.mark.slow
def test_the_benchmark_that_forks_runs(capsys):
    run_script("benchmarks/large_file.py", "--megabytes", "1")
    assert "ratio: " in capsys.readouterr().out


def test_the_benchmark_of_coverage_goes_on_where_it_ended(tmp_path, capsys):
    for n_samples, n_lines in [("1", 2), ("2", 3), ("0", 3)]:
        arguments = [tmp_path / "samples.csv", "--only", "own*", "--samples", n_samples]
        with pytest.raises(SystemExit) as exited:
            run_script("benchmarks/coverage.py", *arguments)
        assert exited.value.code is None
        assert len((tmp_path / "samples.csv").read_text().splitlines()) == n_lines
        assert "\nown value " in capsys.readouterr().out


def test_the_benchmark_of_confidence_goes_on_where_it_ended(tmp_path, monkeypatch, capsys):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # which it sets for its processes
        monkeypatch.setenv(name, "1")
    path = tmp_path / "samples.csv"
    for n_samples, n_lines in [("1", 4), ("2", 7), ("0", 7)]:
        before = path.read_text() if path.exists() else ""
        arguments = [path, "--only", "2x5", "--samples", n_samples]
        with pytest.raises(SystemExit) as exited:
            run_script("benchmarks/confidence.py", *arguments)
        assert exited.value.code is None
        assert path.read_text().startswith(before)
        assert len(path.read_text().splitlines()) == n_lines
        assert " aim " in capsys.readouterr().out


@pytest.mark.parametrize(("column", "n_bands"), [("age", 3), ("s4", 5), ("s5", 4), ("bmi", 10)])
def test_built_in_joints_have_readable_labels(column, n_bands):
    joint = load_diabetes_joint(column, n_bands)
    assert joint.columns.is_unique
    assert joint.to_numpy().sum() == 442
    with pytest.raises(ValueError, match="'column' parameter of load_diabetes_joint"):
        load_diabetes_joint("sex")


def test_the_built_in_joint():
    joint = load_diabetes_joint("bmi", n_bands=4)
    assert joint.shape == (2, 4)
    assert joint.to_numpy().sum() == 442
