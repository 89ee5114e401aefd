"""A first line that is a row is never taken for the names of columns."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import funnel

from skprivacy.cli import main
from skprivacy.files import fit_file, transform_file
from skprivacy.files.opening import read_from

CREDIT = """\
A11,6,A34,A43,1169,A65,A75,4,A93,67,1
A12,48,A32,A43,5951,A61,A73,2,A92,22,2
A14,12,A34,A46,2096,A61,A74,2,A93,49,1
A11,42,A32,A42,7882,A61,A74,2,A93,45,1
"""
TEXTS = "f,low,red\n" + "m,high,blue\nf,low,red\nm,low,blue\n" * 4
IRIS = "5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n6.3,3.3,6.0,2.5,virginica\n"

WITHOUT = {
    "codes and numbers": CREDIT,
    "texts that occur again": TEXTS,
    "numbers and a name": IRIS,
    "dates": "2020-01-02,a\n2020-01-03,b\n",
    "one column": "3\n1\n2\n",
    "missing fields": "f,,3\nm,2,4\nf,,5\n",
    "quotes": '"f","1"\n"m","2"\n',
}
WITH = {
    "words above numbers": "age,hours\n39,40\n50,13\n",
    "words above words": "sex,band\nf,low\nm,high\n",
    "years above numbers": "country,2018,2019,2020\nDE,1.5,2.5,3.5\nFR,2.5,1.5,0.5\n",
    "numbered columns": "name,1,2,3\nx,0.5,0.25,0.1\ny,0.1,0.2,0.3\n",
    "a name that is a value once": "age,A,weight,height\n1,B,3,4\n2,A,5,6\n",
    "nothing below": "sex,band\n",
    "a column without a name": ",sex,age\n0,f,31\n1,m,42\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text, name="in.csv"):
    Path(name).write_text(text)
    return name


@pytest.mark.parametrize("name", WITHOUT)
def test_a_row_is_refused(name):
    with (
        pytest.raises(ValueError, match=r"in.csv: the first line may be a row and no header"),
        read_from(written(WITHOUT[name])),
    ):
        pass


def test_the_error_shows_columns_and_no_value():
    with (
        pytest.raises(ValueError, match="see fields 1, 2 and 3") as caught,
        read_from(written(CREDIT)),
    ):
        pass
    assert "A11" not in str(caught.value)
    assert "header=False" in str(caught.value)


@pytest.mark.parametrize("name", WITH)
def test_a_header_is_taken(name):
    with read_from(written(WITH[name])) as source:
        assert source.names == WITH[name].splitlines()[0].split(",")


@pytest.mark.parametrize("seed", range(30))
def test_tables_of_any_kind_without_their_header(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 200))
    kinds = [
        lambda: rng.choice(list("abc"), n),
        lambda: rng.integers(0, 90, n),
        lambda: np.round(rng.normal(size=n), 2),
        lambda: rng.choice(["yes", "no"], n),
    ]
    columns = {f"name {i}": kinds[rng.integers(4)]() for i in range(rng.integers(2, 9))}
    frame = pd.DataFrame(columns)
    with read_from(written(frame.to_csv(index=False))) as source:
        assert source.names == list(frame)
    # A first row that says nothing of this kind has no number in it, and no value that is below.
    with (
        pytest.raises(ValueError, match="may be a row|have the same name"),
        read_from(written(frame.to_csv(index=False, header=False))),
    ):
        pass


def test_it_can_be_said():
    with read_from(written(CREDIT), header=False) as source:
        assert source.names[:3] == ["c1", "c2", "c3"]
        assert sum(map(len, source.blocks())) == 4
    names = [f"n{i}" for i in range(11)]
    with read_from(written(CREDIT), names=names) as source:
        assert source.names == names
        assert sum(map(len, source.blocks())) == 4
    with read_from(written(CREDIT), header=True) as source:
        assert sum(map(len, source.blocks())) == 3


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"names": ["a", "b"]}, ValueError, r"has 11 columns, but names=\[...\] has 2"),
        ({"names": ["a"] * 11}, ValueError, "has 'a' twice"),
        ({"names": "abc"}, TypeError, "must be a list of texts"),
        ({"names": ["a"], "header": True}, ValueError, "leave out header=True"),
    ],
)
def test_what_cannot_be_meant(options, error, text):
    with pytest.raises(error, match=text), read_from(written(CREDIT), **options):
        pass


def test_a_name_that_is_there_twice_may_be_a_missing_header():
    twice = "f,f,low\nm,f,high\n"
    with (
        pytest.raises(
            ValueError,
            match="columns 1 and 2 have the same name: if there is no header, say header=False",
        ) as caught,
        read_from(written(twice)),
    ):
        pass
    assert "'f'" not in str(caught.value)


def test_parquet_has_names():
    pd.DataFrame({"a": [1]}).to_parquet("in.parquet")
    with (
        pytest.raises(ValueError, match="Parquet file has the names"),
        read_from("in.parquet", header=False),
    ):
        pass


def people(n=300):
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=n)
    return pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "band": np.array(list("abcd"))[rng.binomial(3, 0.3 + 0.3 * sex)],
        }
    )


def test_files_in_python():
    people().to_csv("in.csv", index=False, header=False)
    fitted = fit_file(funnel(columns=["band"]), "in.csv", names=["sex", "band"])
    assert fitted.n_samples_seen_ == 300
    assert transform_file(fitted, "in.csv", "out.csv", names=["sex", "band"]) == 300
    released = pd.read_csv("out.csv")
    assert list(released) == ["band"]
    assert len(released) == 300


def test_commands(capsys):
    people().to_csv("in.csv", index=False, header=False)
    design = ["--sensitive", "sex", "--columns", "band"]
    assert main(["sanitize", "in.csv", "out.csv", *design, "--epsilon", "0.01"]) == 1
    said = capsys.readouterr().err
    assert "--no-header" in said
    assert "--names" in said
    assert said.count("\n") == 1
    named = ["--names", "sex,band"]
    save = ["--save-mechanism", "m.json", "--epsilon", "0.01"]
    assert main(["sanitize", "in.csv", "out.csv", *design, *named, *save]) == 0
    assert len(pd.read_csv("out.csv")) == 300
    assert main(["apply", "m.json", "in.csv", "again.csv", *named]) == 0
    assert main(["choose", "in.csv", *design, *named]) == 0
    assert main(["curve", "in.csv", *design, *named, "--epsilons", "0.01"]) == 0
    assert main(["audit", "in.csv", "--sensitive", "sex", "--released", "out.csv", *named]) == 0
    numbered = ["--sensitive", "c1", "--columns", "c2", "--no-header", "--epsilon", "0.01"]
    assert main(["sanitize", "in.csv", "c.csv", *numbered]) == 0
    assert list(pd.read_csv("c.csv")) == ["c2"]
