"""The notebooks among the examples; the other scripts are run by tests/test_package.py."""

import pytest
from scripts import run_script


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("quickstart.py", "Privacy report: band released, sex protected"),
        ("pipelines.py", "{'privacyfunneltransformer__epsilon': 0.02}"),
        ("face_value.py", ""),
        ("enough_rows.py", "about "),
        ("whole_table.py", ""),
        ("several_secrets.py", "as one: keeps 55.2% of the information"),
        ("choosing_epsilon.py", "at epsilon = 0, 58.7% of H(X) is kept"),
        ("parity_in_practice.py", "0.102 on these rows, at most 0.125 in the population"),
        ("large_data.py", "200,000 rows, epsilon = 0.01, leakage 0.0100"),
    ],
)
@pytest.mark.usefixtures("quick_attackers")
def test_the_notebooks_run_without_warnings(script, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_script(f"examples/{script}")  # a warning is an error in all tests
    assert text in capsys.readouterr().out
    assert not list(tmp_path.iterdir())  # they write nothing
