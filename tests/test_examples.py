"""The notebooks among the examples; the other scripts are run by tests/test_package.py."""

import os
import shutil

import pytest
from scripts import changed, run_script

slow = pytest.mark.slow  # some are shorter below; the build of the pages runs all
on_spark = [
    slow,
    pytest.mark.skipif(
        not (shutil.which("java") or os.environ.get("JAVA_HOME")), reason="Spark needs Java"
    ),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("quickstart.py", "Privacy report: band released, sex protected"),
        pytest.param("pipelines.py", "leakage about sex: 0.01", marks=slow),
        pytest.param("face_value.py", "", marks=slow),
        pytest.param("enough_rows.py", "about ", marks=slow),
        pytest.param("whole_table.py", "", marks=slow),
        ("several_secrets.py", "as one: keeps 55.2% of the information"),
        ("choosing_epsilon.py", "{'privacyfunneltransformer__epsilon': 0.01}"),
        pytest.param(
            "parity_in_practice.py",
            "0.102 on these rows, at most 0.125 in the population",
            marks=slow,
        ),
        pytest.param("spark_table.py", "rows that differ: 0", marks=on_spark),
        pytest.param("large_data.py", "200,000 rows, epsilon = 0.01, leakage 0.0100", marks=slow),
    ],
)
@pytest.mark.usefixtures("quick_attackers")
def test_the_notebooks_run_without_warnings(script, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_script(f"examples/{script}")  # a warning is an error in all tests
    assert text in capsys.readouterr().out
    assert not list(tmp_path.iterdir())  # they write nothing


@pytest.mark.parametrize(
    ("script", "long", "short", "text"),
    [
        ("enough_rows.py", "range(4)", "range(1)", "about "),
        pytest.param(
            "parity_in_practice.py",
            "census(12_000",
            "census(3_000",
            " on these rows, at most 0.",
            marks=slow,
        ),
        (
            "large_data.py",
            "size=20_000",
            "size=2_000",
            "20,000 rows, epsilon = 0.01, leakage 0.0100",
        ),
    ],
    ids=["enough_rows", "parity_in_practice", "large_data"],
)
@pytest.mark.usefixtures("quick_attackers")
def test_on_fewer_rows(script, long, short, text, tmp_path, capsys):
    run_script(changed(f"examples/{script}", tmp_path, long, short))
    assert text in capsys.readouterr().out
