"""Files without a header: a first row that would be taken for names is refused, not published."""

import io

import numpy as np
import pandas as pd
import pytest

from skprivacy import PrivacyFunnelTransformer
from skprivacy.cli import main
from skprivacy.engines import csv_text as delimited
from skprivacy.engines.csv_fields import split
from skprivacy.engines.csv_text import data_fields
from skprivacy.engines.files import read_from
from skprivacy.files import fit_file, transform_file


def adults(rng, n):
    """Rows like those of a census."""
    return pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "workclass": rng.choice(["Private", "State-gov", "?"], n),
            "education": rng.choice(["Bachelors", "HS-grad", "11th"], n),
            "sex": rng.choice(["Male", "Female"], n),
            "capital_gain": rng.choice([0, 0, 0, 2174, 14084], n),
            "income": rng.choice(["<=50K", ">50K"], n),
        }
    )


def credits(rng, n):
    """Rows like those of the German credit data: codes and numbers."""
    return pd.DataFrame(
        {
            "status": rng.choice(["A11", "A12", "A14"], n),
            "duration": rng.integers(4, 72, n),
            "history": rng.choice(["A32", "A34"], n),
            "amount": rng.integers(250, 18_000, n),
            "foreign": rng.choice(["A201", "A202"], n),
        }
    )


def flowers(rng, n):
    numbers = {name: rng.normal(3, 1, n).round(1) for name in ("length", "width", "depth")}
    return pd.DataFrame({**numbers, "species": rng.choice(["setosa", "virginica"], n)})


def texts(rng, n):
    return pd.DataFrame(
        {
            "name": [f"person {chr(97 + i % 26)}{i}" for i in range(n)],
            "city": rng.choice(["Bern", "Graz", "Linz"], n),
            "sex": rng.choice(["m", "f"], n),
        }
    )


def visits(rng, n):
    """Every value is unique, but a date has no letters."""
    days = pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d")
    return pd.DataFrame({"who": [f"p{i}" for i in range(n)], "day": days})


def one_column(rng, n):
    return pd.DataFrame({"sex": rng.choice(["m", "f"], n)})


def wide(rng, n):
    return pd.DataFrame(rng.integers(2, size=(n, 500))).add_prefix("gene_")


TABLES = [adults, credits, flowers, texts, visits, one_column, wide]


def suspects(frame, header=True, **options):
    text = frame.to_csv(index=False, header=header, **options).encode()
    line, _, rows = text.partition(b"\n")
    n_columns = frame.shape[1]
    return data_fields(split(line + b"\n", ",", n_columns, 1), split(rows, ",", n_columns, 1))


class TestWhetherALineIsAHeader:
    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("quoting", [0, 1])
    @pytest.mark.parametrize("n", [20, 300])
    def test_headers_and_rows_are_told_apart(self, table, quoting, n):
        for seed in range(4):
            frame = table(np.random.default_rng(seed), n)
            assert suspects(frame, quoting=quoting) == []
            assert suspects(frame, header=False, quoting=quoting) != []

    @pytest.mark.parametrize(
        "text",
        [
            "country,2019,2020\nAustria,445.1,433.2\nBelgium,533.1,521.7\n",
            "country,2020,2015,2010\nAustria,3,5,9\nBelgium,2,4,7\n",
            "country,1990,1995,2000,2010\nAustria,3,5,4,1\nBelgium,2,4,7,1\n",
            "0,1,2\n0.5,-0.25,0.125\n0.75,0.5,1.5\n",
            ",a,b\n0,x,1\n1,y,2\n",
            "a,b,\n1,x,\n2,y,\n",
            "name,age,income,A\nA,30,100,x\nB,31,200,A\n",
            "sex\nm\nf\n",
            "NA,b\n1,x\n2,y\n",
        ],
        ids=["years", "down", "decades", "count", "index", "comma", "value", "single", "missing"],
    )
    def test_headers_that_look_odd(self, text):
        line, _, rows = text.encode().partition(b"\n")
        n_columns = line.count(b",") + 1
        assert not data_fields(
            split(line + b"\n", ",", n_columns, 1), split(rows, ",", n_columns, 1)
        )

    @pytest.mark.parametrize(
        "text",
        [
            "1,2,3\n4,5,6\n7,8,9\n",
            "39,40,m\n50,13,f\n",
            "Anna,2019,2020\nBen,2019,2021\n",
            "2019,2020\n2015,2016\n2011,2012\n",
            "1,2,3\n3,2,1\n1,3,5\n",
            "39\n40\n",
            "39,m\n",
            "x,,m\ny,5,n\nz,,n\n",
            "?,39,m,a,b\n30,40,f,c,d\n31,50,m,a,b\n",
            "y,n\ny,x\nn,z\n",
        ],
    )
    def test_rows_that_look_odd(self, text):
        line, _, rows = text.encode().partition(b"\n")
        n_columns = line.count(b",") + 1
        assert data_fields(split(line + b"\n", ",", n_columns, 1), split(rows, ",", n_columns, 1))


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=400)
    return pd.DataFrame(
        {
            "id": rng.permutation(400) + 1000,
            "sex": np.where(sex, "male", "female"),
            "band": np.array(["low", "mid", "high"])[rng.binomial(2, 0.3 + 0.4 * sex)],
        }
    )


def funnel(sensitive, columns, **parameters):
    parameters = {"epsilon": 0.02, "remainder": "drop"} | parameters
    return PrivacyFunnelTransformer(sensitive=[sensitive], columns=[columns], **parameters)


class TestFiles:
    @pytest.mark.parametrize("quoting", [0, 1])
    def test_a_first_row_is_refused_and_not_shown(self, tmp_path, people, quoting):
        path = tmp_path / "in.csv"
        people.to_csv(path, index=False, header=False, quoting=quoting)
        first = people.iloc[0].tolist()
        with pytest.raises(ValueError, match=r"in\.csv: the first line .* fields 1, 2 and 3") as e:
            fit_file(funnel(first[1], first[2]), path)
        assert "header=False" in str(e.value)
        assert "names=[...]" in str(e.value)
        shown = str(e.value).replace(str(path), "")
        assert not any(str(value) in shown.split() for value in first)

    @pytest.mark.parametrize("names", [None, ["person", "sex", "band of, some"]])
    @pytest.mark.parametrize("line_end", ["\n", "\r\n"])
    @pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
    def test_no_row_is_lost(self, tmp_path, people, names, line_end, mark):
        source, target = tmp_path / "in.csv", tmp_path / "out.csv"
        text = people.to_csv(index=False, header=False, lineterminator=line_end).encode()
        source.write_bytes(mark + text)
        called = names or ["c1", "c2", "c3"]
        how = {"names": names} if names else {"header": False}
        transformer = funnel(called[1], called[2], remainder="passthrough", epsilon=10.0)
        transformer.set_params(columns=called[2:])
        with pytest.warns(UserWarning, match="next to nothing"):
            fit_file(transformer, source, **how)
        assert transformer.n_samples_seen_ == 400
        assert transform_file(transformer, source, target, **how) == 400
        assert target.read_bytes().startswith(mark + called[0].encode() + b",")
        released = pd.read_csv(target)
        assert list(released) == [called[0], called[2]]
        assert released[called[0]].tolist() == people["id"].tolist()
        assert released[called[2]].tolist() == people["band"].tolist()  # no noise at such a budget
        assert b"\r" not in target.read_bytes()  # how the first row ends is not told
        with read_from(target) as again:  # what was released has a header
            assert again.names == [called[0], called[2]]

    def test_other_kinds_of_output_have_names_too(self, tmp_path, people):
        people.to_csv(tmp_path / "in.csv", index=False, header=False)
        transformer = funnel("c2", "c3")
        fit_file(transformer, tmp_path / "in.csv", header=False)
        for name in ("out.tsv", "out.parquet", "out.csv.gz"):
            out = tmp_path / name
            assert transform_file(transformer, tmp_path / "in.csv", out, header=False) == 400
            with read_from(out) as again:
                assert again.names == ["c3"]

    def test_a_header_that_looks_like_data_may_be_said_to_be_one(self, tmp_path, people):
        people.columns = ["7", "sex", "99"]
        people.to_csv(tmp_path / "in.csv", index=False)
        transformer = funnel("sex", "99")
        with pytest.raises(ValueError, match="fields 1 and 3"):
            fit_file(transformer, tmp_path / "in.csv")
        assert fit_file(transformer, tmp_path / "in.csv", header=True).n_samples_seen_ == 400

    def test_lines_are_counted_from_the_first(self, tmp_path):
        (tmp_path / "in.csv").write_text("m,1\nf,2\nm\n")
        with pytest.raises(ValueError, match="line 3 has 1 fields where the first line has 2"):
            fit_file(funnel("c1", "c2"), tmp_path / "in.csv", header=False)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"names": ["a", "b"]}, ValueError, r"has 3 columns, but names=\[...\] has 2"),
            ({"names": ["a", "b", "b"]}, ValueError, "has 'b' twice"),
            ({"names": "abc"}, TypeError, "must be a list of texts"),
            ({"names": ["a", "b", ""]}, TypeError, "must be a list of texts"),
            ({"names": ["a", "b", 3]}, TypeError, "must be a list of texts"),
            ({"names": ["a", "b", "c"], "header": True}, ValueError, "leave out header=True"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path, people, options, error, message):
        people.to_csv(tmp_path / "in.csv", index=False, header=False)
        with pytest.raises(error, match=message):
            fit_file(funnel("a", "b"), tmp_path / "in.csv", **options)

    def test_a_name_that_is_there_twice_is_not_shown(self, tmp_path):
        (tmp_path / "in.csv").write_text("HIV,no,HIV\nnone,no,HIV\n")
        with pytest.raises(ValueError, match="columns 1 and 3 have the same name") as caught:
            fit_file(funnel("a", "b"), tmp_path / "in.csv")
        assert "header=False" in str(caught.value)
        assert "HIV" not in str(caught.value)

    def test_a_row_with_another_delimiter_is_not_shown(self, tmp_path):
        (tmp_path / "in.csv").write_text("HIV;no\nnone;yes\n")
        with pytest.raises(ValueError, match="is that the delimiter") as caught:
            fit_file(funnel("a", "b"), tmp_path / "in.csv")
        assert "HIV" not in str(caught.value)

    def test_parquet_has_names(self, tmp_path, people):
        people.to_parquet(tmp_path / "in.parquet")
        fit_file(funnel("sex", "band"), tmp_path / "in.parquet", header=True)
        for options in ({"header": False}, {"names": ["a", "b", "c"]}):
            with pytest.raises(ValueError, match="a Parquet file already names"):
                fit_file(funnel("sex", "band"), tmp_path / "in.parquet", **options)

    def test_a_first_row_that_does_not_end(self, tmp_path):
        for text in ('"', '"abc', 'a,"b', 'a,"b\nc,d\n'):
            (tmp_path / "in.csv").write_text(text)
            with pytest.raises(ValueError, match="the row on line 1 does not end"):
                fit_file(funnel("a", "b"), tmp_path / "in.csv")

    def test_a_quoted_name_after_a_mark(self, tmp_path):
        (tmp_path / "in.csv").write_bytes(b'\xef\xbb\xbf"sex\nof all",band\nm,a\nf,b\n')
        with read_from(tmp_path / "in.csv") as source:
            assert source.names == ["sex\nof all", "band"]
            assert [len(block) for block in source.blocks()] == [2]

    @pytest.mark.parametrize("place", ["header", "row"])
    def test_a_long_row_is_read_in_linear_time(self, tmp_path, monkeypatch, place):
        monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)
        monkeypatch.setattr(delimited, "LINE_BYTES", 1000)
        n_bytes = {"read": 0}

        def counting(function):
            def counted(text, *arguments):
                n_bytes["read"] += len(text)
                return function(text, *arguments)

            return counted

        for name in ("split", "first_row_end", "is_inside_quotes", "n_fields"):
            monkeypatch.setattr(delimited, name, counting(getattr(delimited, name)))
        long = '"' + 'x\n,""' * 200_000 + '"'
        header, row = (long, "x") if place == "header" else ("note", long)
        (tmp_path / "in.csv").write_text(f"{header},sex\ny,m\n{row},m\nz,f\n")
        with read_from(tmp_path / "in.csv", header=True) as source:
            assert sum(map(len, source.blocks())) == 3
        assert n_bytes["read"] <= 8 * len(long)


class TestCommands:
    def test_no_header_and_names(self, tmp_path, people, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        people.to_csv("in.csv", index=False, header=False)
        design = ["--epsilon", "0.02", "--remainder", "drop"]
        command = ["sanitize", "in.csv", "out.csv", *design]
        assert main([*command, "--sensitive", "c2", "--columns", "c3"]) == 1
        said = capsys.readouterr().err
        assert "use --no-header if it is a row, with --names" in said
        assert "male" not in said
        named = ["--names", "id,sex,band"]
        saved = ["--save-mechanism", "m.json", *named]
        assert main([*command, "--sensitive", "sex", "--columns", "band", *saved]) == 0
        assert main(["apply", "m.json", "in.csv", "again.csv", *named]) == 0
        assert len(pd.read_csv("out.csv")) == len(pd.read_csv("again.csv")) == 400
        both = ["in.csv", "--sensitive", "c2", "--columns", "c3", "--no-header"]
        both += ["--confidence", "none"]
        assert main(["choose", *both]) == 0
        assert main(["curve", *both, "--epsilons", "0.01"]) == 0
        attack = ["audit", "in.csv", "--sensitive", "sex", "--released"]
        assert main([*attack, "out.csv", *named]) == 0
        assert main([*attack, "band", *named]) == 0
        assert "400 rows" in capsys.readouterr().out

    def test_a_release_whose_names_look_like_data(self, tmp_path, people, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        people.columns = ["7", "sex", "99"]
        people.to_csv("in.csv", index=False)
        design = ["--sensitive", "sex", "--columns", "99", "--epsilon", "0.02"]
        said = ["--header", "--remainder", "drop"]
        assert main(["sanitize", "in.csv", "out.csv", *design, *said]) == 0
        attack = ["audit", "in.csv", "--sensitive", "sex", "--released", "out.csv"]
        assert main([*attack, "--header"]) == 0
        people.to_csv("rows.csv", index=False, header=False)
        attack[1] = "rows.csv"
        assert main([*attack, "--names", "7,sex,99"]) == 0
        capsys.readouterr()
        assert main([*attack, "--names", "7,sex"]) == 1
        assert "has 3 columns, but --names has 2" in capsys.readouterr().err
        assert main([*attack, "--names", "7,sex,99", "--header"]) == 1
        assert "leave out --header" in capsys.readouterr().err

    def test_a_pipe_without_a_header(self, tmp_path, people, capsysbinary, monkeypatch):
        text = people.to_csv(index=False, header=False).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        design = ["--sensitive", "c2", "--columns", "c3", "--epsilon", "0.02"]
        assert main(["sanitize", "-", "-", *design, "--remainder", "drop", "--no-header"]) == 0
        released = pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))
        assert list(released) == ["c3"]
        assert len(released) == 400
