"""What needs neither a process nor a browser: choices, columns, and words."""

import pandas as pd
import pytest

from skprivacy._messages import InPython, Message, Setting
from skprivacy.ui.choices import STOPS, Choices, numbered
from skprivacy.ui.columns import Overview, open_regular
from skprivacy.ui.views import in_words

ROLES = {"sex": "protect", "bmi": "randomise", "age": "beside", "id": "drop"}


def test_choices_are_what_was_sent():
    sent = {
        "roles": ROLES,
        "purpose": "predict",
        "target": "ill",
        "points": 7.5,
        "population": False,
        "bins": 4,
        "pooled": 5,
        "ordered": {"bmi": ["low", "high"], "age": ["old", "young"]},
    }
    choices = Choices.from_json(sent)
    again = choices.to_json()
    assert Choices.from_json(again) == choices
    assert again["roles"] == {name: role for name, role in ROLES.items() if role != "drop"}
    made = choices.transformer(0.1)
    assert made.ordered == {"bmi": ["low", "high"]}  # only of columns that are randomised
    assert (made.sensitive, made.columns, made.beside) == (["sex"], ["bmi"], ["age"])
    assert (made.utility, made.confidence, made.max_categories) == ("target", None, 5)
    assert choices.stops()[0] == 7.5
    assert {*choices.stops()} == {*STOPS, 7.5}


def test_a_target_that_is_randomised_is_drawn_with_the_row():
    sent = {"roles": ROLES | {"ill": "randomise"}, "purpose": "predict", "target": "ill"}
    sent["ordered"] = {"bmi": ["low", "high"], "ill": ["no", "yes"]}
    made = Choices.from_json(sent).transformer()
    assert (made.columns, made.release_target) == (["bmi"], True)
    assert (set(made.n_bins), set(made.ordered)) == ({"bmi"}, {"bmi"})
    near = Choices.from_json(sent | {"purpose": "near"}).transformer()
    assert (near.columns, near.release_target) == (["bmi", "ill"], False)


def test_files_of_further_releases_are_numbered():
    assert [numbered("released.csv", n) for n in (1, 2)] == ["released.csv", "released-2.csv"]


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({}, ""),
        ({"roles": {}}, "Say which column to protect."),
        ({"roles": {"sex": "protect"}}, "Say which columns to randomise."),
        ({"purpose": "predict"}, "Say which column is to be predicted."),
        ({"purpose": "predict", "target": "sex"}, "sex is to be protected"),
        ({"purpose": "predict", "target": "bmi"}, "Randomise another column too"),
        ({"purpose": "predict", "target": "age"}, "age is published as it is"),
        ({"purpose": "near", "target": "sex"}, ""),
    ],
)
def test_what_is_missing_is_said(changed, missing):
    assert Choices.from_json({"roles": ROLES} | changed).missing().startswith(missing)


def test_columns_are_described():
    n = 60
    rows = pd.DataFrame(
        {
            "id": range(n),
            "name": [f"p{i}" for i in range(n)],
            "weight": [50 + i / 7 for i in range(n)],
            "level": ["High", "low", "Medium"] * (n // 3),
            "band": ["10 to 20", "<10", ">20"] * (n // 3),
            "when": pd.date_range("2020-01-01", periods=n),
            "is": [True, False] * (n // 2),
            "part": [None, 1.0] * (n // 2),
        }
    )
    found = {each["name"]: each for each in Overview(rows, n).described()}
    assert [name for name, each in found.items() if each["is_name"]] == ["id", "name"]
    assert found["level"]["scale"] == ["low", "Medium", "High"]
    assert found["band"]["scale"] == ["<10", "10 to 20", ">20"]
    kinds = {name: each["kind"] for name, each in found.items()}
    assert kinds["when"] == "date"
    assert kinds["is"] == "yes or no"
    assert kinds["weight"] == "number"
    assert found["part"]["missing"] == 30
    assert found["part"]["examples"] == ["1"]


def test_only_regular_files_are_opened(tmp_path):
    (tmp_path / "rows.csv").write_text("a\n1\n")
    with open_regular(str(tmp_path / "rows.csv")) as file:
        assert file.read() == b"a\n1\n"
    with pytest.raises((ValueError, OSError)):
        open_regular("/dev/null")


def test_messages_speak_of_the_page():
    said = Message.of("{X} say much. Use {epsilon}, or {beside}. Or set {solver='optimal'}.")
    assert in_words(said) == (
        "the released columns say much. Use the protection, or the columns to publish as they are."
    )
    nested = InPython("in Python", Setting("confidence", 0.9))
    assert in_words(Message("Set ", nested, ".")) == "Set the confidence."
    assert in_words(KeyError("x")) == "'x'"
