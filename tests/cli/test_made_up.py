"""The commands about made-up rows: targets, orders, and the search for people."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from skprivacy import PrivacyFunnelTransformer, PrivacyReport, TreeCells
from skprivacy.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made_up")
    rng = np.random.default_rng(0)
    n = 4000
    sex = rng.integers(2, size=n)
    town = rng.integers(6, size=n)
    table = pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "town": [f"town {i}" for i in town],
            "region": [f"region {i // 2}" for i in town],
            "age": rng.integers(18, 80, n),
            "hours": rng.normal(32 + 6 * sex, 8, n).round(),
            "risk": np.array(["Low", "Medium", "High"])[rng.binomial(2, 0.3 + 0.2 * sex)],
        }
    )
    table["bought"] = np.where(rng.random(n) < table["hours"].clip(0, 60) / 60, "yes", "no")
    table[: n // 2].to_csv(folder / "members.csv", index=False)
    table[n // 2 :].to_csv(folder / "others.csv", index=False)
    return folder


def run(*arguments, capsys):
    assert main([str(argument) for argument in (*arguments, "--no-progress")]) == 0
    return capsys.readouterr().out


SANITIZE = (
    "--sensitive",
    "sex",
    "--epsilon",
    "0.05",
    "--confidence",
    "none",
    "--alphabet",
    "cells",
)


def test_the_target_comes_along(folder, capsys):
    out = folder / "with_target.csv"
    said = run("sanitize", folder / "members.csv", out, *SANITIZE, "--target", "bought",
               "--release-target", "--report", folder / "with_target.html", "--no-attack",
               "--no-curve", capsys=capsys)  # fmt: skip
    page = (folder / "with_target.html").read_text()
    treatments = page[page.index("Columns, by treatment") :]
    assert "bought" in treatments[treatments.index("drawn") :].partition("</tr>")[0]
    assert "bought" not in treatments.partition("dropped")[2].partition("</tr>")[0]
    released = pd.read_csv(out)
    assert released.columns[-1] == "bought"
    assert set(released["bought"]) == {"yes", "no"}
    assert "is left out" not in said.replace("all other columns left out", "")
    without = run("sanitize", folder / "members.csv", folder / "without.csv", *SANITIZE,
                  "--target", "bought", capsys=capsys)  # fmt: skip
    assert "bought" not in pd.read_csv(folder / "without.csv")
    assert "--release-target" in without
    assert "release_target" not in without


def test_it_needs_a_target(folder, capsys):
    arguments = [
        "sanitize",
        folder / "members.csv",
        folder / "no.csv",
        *SANITIZE,
        "--release-target",
    ]
    assert main(list(map(str, arguments))) != 0
    assert "--release-target needs --target" in capsys.readouterr().err


def test_people_are_looked_for(folder, capsys):
    out = folder / "made_up.csv"
    run("sanitize", folder / "members.csv", out, *SANITIZE, capsys=capsys)
    asked = ["audit", folder / "members.csv", "--sensitive", "sex", "--released", out,
             "--others", folder / "others.csv", "--known", "town,age"]  # fmt: skip
    found = json.loads(run(*asked, "--json", capsys=capsys))["linkage"]
    assert [each["known"] for each in found] == ["2 of 6 columns", "all columns but one"]
    assert all(each["high"] < 0.05 for each in found)
    copied = [*asked[:5], folder / "members.csv", *asked[6:]]
    assert main(list(map(str, copied))) != 0  # it holds the sensitive column
    few = [folder / "few.csv", folder / "few_made_up.csv"]  # in words, of fewer rows
    for path, whole in zip(few, [asked[1], out], strict=True):
        pd.read_csv(whole).head(300).to_csv(path, index=False)
    asked[1], asked[5] = few
    assert "others who were left out" in run(*asked, capsys=capsys)


def test_a_report_counts_contradictions_and_looks_for_people(folder):
    table = pd.read_csv(folder / "members.csv")
    funnel = PrivacyFunnelTransformer(0.05, sensitive="sex", alphabet=TreeCells(max_cells=12))
    said = str(PrivacyReport.from_estimator(funnel.fit(table), table, with_curve=False))
    said = " ".join(said.split())
    assert "0 of 2,000 released rows contradict a dependency of columns" in said
    assert "region follows from town" in said
    (before, _), (after, low) = re.findall(
        r"([+-][\d.]+) \(([+-][\d.]+) to", said.partition("linkage, in points")[2]
    )[:2]
    assert float(before) > 20 > float(after)
    assert float(low) < 2  # no link that chance does not explain


def test_an_order_is_suggested(folder, capsys):
    arguments = ["sanitize", folder / "members.csv", folder / "risk.csv", "--sensitive", "sex",
                 "--columns", "risk", "--epsilon", "0.02"]  # fmt: skip
    said = run(*arguments, capsys=capsys)
    assert "--ordered risk=Low,Medium,High" in said
    again = run(*arguments, "--force", "--ordered", "risk=Low,Medium,High", capsys=capsys)
    assert "look like a scale" not in again
    assert "steps" in again


@pytest.mark.parametrize("order", [[], ["--ordered", "risk=Low,Medium,High"]])
def test_an_order_counts_alike_wherever_a_design_is_made(folder, order, capsys):
    asked = [folder / "members.csv", "--sensitive", "sex", "--columns", "risk,town", *order,
             "--alphabet", "values", "--confidence", "none", "--json"]  # fmt: skip
    (found,) = json.loads(run("curve", *asked, "--epsilons", "0.02", capsys=capsys))["curve"]
    written = [*asked[:1], folder / f"as_{len(order)}.csv", *asked[1:], "--epsilon", "0.02"]
    released = json.loads(run("sanitize", *written, capsys=capsys))
    assert found["kept"] == pytest.approx(released["kept"], abs=1e-6)
