"""Files: counts gathered in blocks, other fields copied, outputs that appear whole."""

import csv
import gzip
import os
import stat
import warnings
from threading import Thread

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from example_tables import quick_scores

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning, TreeCells
from skprivacy.engines import csv_text as delimited
from skprivacy.engines import parquet_files as parquet
from skprivacy.engines.file_tables import check_free, kind_of, opened, written
from skprivacy.engines.files import FileTable, fit_source, read_from, release_rows, write_to
from skprivacy.files import certify_file, evaluate_file, fit_file, transform_file
from skprivacy.fitting import learned_cells as teachers
from skprivacy.fitting import tally
from skprivacy.fitting.counted_tables import inputs_of
from skprivacy.fitting.fitted_estimator import fitted_of, set_fitted, settings_of


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=n)
    return pd.DataFrame(
        {
            "zip": [f"{z:05d}" for z in rng.integers(100, 400, size=n)],
            "sex": np.where(sex, "m", "f"),
            "band": np.array(["low", "mid", "high"])[rng.binomial(2, 0.3 + 0.4 * sex)],
            "age": rng.integers(18, 80, size=n),
            "note": ['said "no", twice', "plain", "two\nlines", ""] * (n // 4),
        }
    )


def funnel(**parameters):
    defaults = {"epsilon": 0.02, "sensitive": ["sex"], "columns": ["band"]}
    parameters = defaults | {"remainder": "passthrough", "handle_unknown": "error"} | parameters
    return PrivacyFunnelTransformer(**parameters)


def sanitized(transformer, source, target, **options):
    with read_from(source, **options) as table:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            fitted, _ = fit_source(settings := settings_of(transformer), table)
        set_fitted(transformer, fitted)
        with write_to(target, table) as sink:
            return release_rows(fitted, settings, table, sink)


WIDE = ["zip", "band", "age", "note", "pay"]


def wide(n=4000):
    """Return people with a number of their own, which is a text in a single row."""
    rows = people(n)
    rows["pay"] = np.random.default_rng(1).normal(9, 2, n).round(6).astype(object)
    rows["code"] = rows["age"].astype(object)
    rows.loc[n - 1, "code"] = "none"
    return rows


class TestCells:
    @pytest.fixture(autouse=True)
    def _quiet(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    @pytest.fixture(params=["csv", "parquet"])
    def file(self, request, tmp_path):
        path = tmp_path / f"people.{request.param}"
        if request.param == "csv":
            wide().to_csv(path, index=False)
        else:
            wide().astype({"pay": float, "code": str}).to_parquet(path)
        return path

    def cells(self, **options):
        given = {"epsilon": 0.1, "columns": WIDE, "remainder": "drop", "random_state": 0}
        return funnel(**given | {"alphabet": TreeCells(max_cells=12)} | options)

    def test_cells_are_those_of_the_frame(self, file):
        for options in ({}, {"alphabet": quick_scores(), "utility": "target"}):
            target = "band" if options else None
            there = fit_file(self.cells(**options), file, target=target)
            frame = wide().astype({"pay": float, "code": str})
            if file.suffix == ".csv":
                frame["note"] = frame["note"].replace("", None)
            here = self.cells(**options).fit(frame, frame["band"] if options else None)
            assert here.mechanism_.channel.tobytes() == there.mechanism_.channel.tobytes()
            assert here.cells_["rule"].tolist() == there.cells_["rule"].tolist()

    @pytest.mark.parametrize(
        "options",
        [{"alphabet": "cells"}, {"alphabet": quick_scores(), "utility": "target"}],
        ids=["tree", "scores"],
    )
    def test_some_rows_teach_cells_and_all_are_counted(self, file, options, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 1000)
        monkeypatch.setattr(teachers, "MOST_ROWS", 2500)
        target = "band" if "utility" in options else None
        given = {"columns": None, "remainder": ["note"], **options}
        settings = self.cells(**given, n_bins={"age": [-np.inf, 40, 60, np.inf]})
        fitted = fit_file(settings, file, target=target)
        names = [name for name in ("zip", "band", "age", "pay", "code") if name != target]
        frame = wide().astype({"pay": float, "code": str})
        alphabet = fitted_of(fitted).alphabet
        assert fitted_of(fitted).x_names == names
        assert alphabet.tables()[0].sum() == pytest.approx(4000, rel=0.1)
        cells, _ = alphabet.encode([frame[name] for name in names], names)
        counts = pd.crosstab(frame["sex"], cells).to_numpy()
        assert (fitted_of(fitted).training.counts == counts).all()
        assert fitted.n_samples_seen_ == 4000
        out = file.parent / f"out{file.suffix}"
        assert transform_file(fitted, file, out) == 4000
        released = (pd.read_csv if file.suffix == ".csv" else pd.read_parquet)(out)
        assert list(released) == [n for n in frame.columns if n in [*names, "note"]]
        assert (released["age"] % 1 == 0).all()

    def test_values_name_cells_as_a_way_out(self, file, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 1000)
        with pytest.raises(ValueError, match="'pay' has the most .* symbol: alphabet='cells'"):
            fit_file(self.cells(alphabet="values"), file)

    def test_a_target_is_a_column_that_is_not_sensitive(self, file):
        for wrong in ("sex", "income", None):
            with pytest.raises(
                ValueError,
                match="must name a column of the file that is neither sensitive.*, with",
            ):
                fit_file(self.cells(utility="target", alphabet="values"), file, target=wrong)


class TestLocations:
    @pytest.mark.parametrize(
        ("name", "kind", "expected"),
        [
            ("a.csv", None, ("csv", False)),
            ("a.b.TSV.gz", None, ("tsv", True)),
            ("a.parquet", None, ("parquet", False)),
            ("-", None, ("csv", False)),
            ("-", "tsv", ("tsv", False)),
            ("a.dat", "csv", ("csv", False)),
        ],
    )
    def test_kinds(self, name, kind, expected):
        assert kind_of(name, kind) == expected

    @pytest.mark.parametrize(
        ("name", "text"), [("a.dat", "has no suffix"), ("a.parquet.gz", "compressed already")]
    )
    def test_names_that_do_not_tell(self, name, text):
        with pytest.raises(ValueError, match=text):
            kind_of(name)

    def test_a_file_appears_whole_or_not_at_all(self, tmp_path):
        target = tmp_path / "out.csv"
        with pytest.raises(ZeroDivisionError), written(target) as file:
            file.write(b"half %d" % (1 // 0))
        assert os.listdir(tmp_path) == []
        with written(target) as file:
            file.write(b"all")
            assert not target.exists()
        assert target.read_bytes() == b"all"
        assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~_umask()
        assert os.listdir(tmp_path) == ["out.csv"]

    def test_nothing_is_overwritten_unless_it_is_said(self, tmp_path):
        target = tmp_path / "out.csv"
        target.write_text("old")
        with pytest.raises(FileExistsError, match="force=True"), written(target):
            pass
        with written(target, force=True) as file:
            file.write(b"new")
        assert target.read_text() == "new"
        target.chmod(0o600)
        with written(target, force=True) as file:
            file.write(b"newer")
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        race = tmp_path / "race.csv"
        with pytest.raises(FileExistsError, match="in the meantime"), written(race) as file:
            race.write_text("somebody else")
        assert race.read_text() == "somebody else"
        with pytest.raises(IsADirectoryError):
            check_free(tmp_path)
        with pytest.raises(FileNotFoundError, match="does not exist"):
            check_free(tmp_path / "nowhere" / "out.csv")

    def test_a_file_that_somebody_has_open_may_stay(self, tmp_path, monkeypatch):
        target = tmp_path / "out.csv"
        target.write_text("old")

        def locked(*_):
            raise PermissionError(13, "The process cannot access the file")

        monkeypatch.setattr(os, "replace", locked)  # as on Windows
        refused = pytest.raises(PermissionError, match="out.csv' cannot be replaced: close it")
        with refused, written(target, force=True) as file:
            file.write(b"new")
        assert os.listdir(tmp_path) == ["out.csv"]
        assert target.read_text() == "old"

    def test_a_link_is_followed_and_a_device_is_not_replaced(self, tmp_path):
        (tmp_path / "real.csv").write_text("old")
        (tmp_path / "link.csv").symlink_to("real.csv")
        with written(tmp_path / "link.csv", force=True) as file:
            file.write(b"new")
        assert (tmp_path / "link.csv").is_symlink()
        assert (tmp_path / "real.csv").read_text() == "new"
        with written("/dev/null", force=True) as file:
            file.write(b"gone")
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)

    def test_a_named_pipe_can_be_read_twice(self, tmp_path):
        pipe = tmp_path / "pipe.csv"
        os.mkfifo(pipe)
        writer = Thread(target=pipe.write_text, args=["a\n1\n"])
        writer.start()
        with opened(pipe) as input_:
            assert [input_.stream().read(), input_.stream().read()] == [b"a\n1\n"] * 2
        writer.join()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


class TestDelimited:
    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch):
        monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)

    def test_the_text_of_what_is_not_sanitized_is_copied_to_the_byte(self, tmp_path):
        rows = people()
        rows.to_csv(tmp_path / "in.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
        assert sanitized(funnel(), tmp_path / "in.csv", tmp_path / "out.csv") == len(rows)
        released = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
        assert list(released) == ["zip", "band", "age", "note"]
        for name in ("zip", "age", "note"):
            assert released[name].tolist() == rows[name].astype(str).tolist()
        assert set(released["band"]) <= {"low", "mid", "high"}
        raw = (tmp_path / "out.csv").read_text()
        assert raw.startswith("zip,band,age,note\n00")  # quotes are where they are needed
        assert '"said ""no"", twice"' in raw

    @pytest.mark.parametrize("line_end", ["\n", "\r\n"])
    @pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
    def test_line_ends_and_marks_stay(self, tmp_path, line_end, mark):
        rows = people()[["sex", "zip", "band"]]
        text = rows.to_csv(index=False, lineterminator=line_end).encode()
        (tmp_path / "in.csv").write_bytes(mark + text.removesuffix(line_end.encode()))
        sanitized(funnel(), tmp_path / "in.csv", tmp_path / "out.csv")
        out = (tmp_path / "out.csv").read_bytes()
        assert out.startswith(mark + b"zip,band" + line_end.encode())
        assert out.count(line_end.encode()) >= len(rows)
        assert (b"\r" in out) == (line_end == "\r\n")

    def test_row_groups_do_not_tell_what_is_left_out(self, tmp_path, monkeypatch):
        rows = people(900).sort_values("sex", ignore_index=True)
        with pq.ParquetWriter(tmp_path / "in.parquet", pa.Schema.from_pandas(rows)) as file:
            for _, group in rows.groupby("sex"):
                file.write_table(pa.Table.from_pandas(group, preserve_index=False))
        monkeypatch.setattr(parquet, "BATCH_ROWS", 400)
        sanitized(funnel(remainder="drop"), tmp_path / "in.parquet", tmp_path / "out.parquet")
        out = pq.ParquetFile(tmp_path / "out.parquet").metadata
        assert [out.row_group(i).num_rows for i in range(out.num_row_groups)] == [400, 400, 100]

    @pytest.mark.parametrize("order", [["sex", "zip", "band"], ["zip", "band", "sex"]])
    def test_line_ends_do_not_tell_what_is_left_out(self, tmp_path, order):
        """Two sources that were merged, or values of S that end with a carriage return."""
        rows = people(500)[order]
        lines = rows.to_csv(index=False, lineterminator="\n").splitlines()
        ends = ["\n", *np.where(rows["sex"] == "f", "\r\n", "\n")]
        text = "".join(line + end for line, end in zip(lines, ends, strict=True))
        (tmp_path / "in.csv").write_bytes(text.encode())
        sanitized(funnel(), tmp_path / "in.csv", tmp_path / "out.csv")
        out = (tmp_path / "out.csv").read_bytes()
        assert b"\r" not in out
        assert out.count(b"\n") == 501

    def test_it_learns_what_a_frame_teaches(self, tmp_path):
        rows = people()
        rows.to_csv(tmp_path / "in.csv", index=False)
        columns = {"columns": ["band", "age"], "n_bins": 4, "min_frequency": 0.1}
        with read_from(tmp_path / "in.csv") as table:
            inputs_of(settings_of(funnel(**columns)), counted := FileTable(table))
            from_file = funnel(remainder="drop", **columns)
            set_fitted(from_file, fit_source(settings_of(from_file), table)[0])
        from_frame = funnel(remainder="drop", **columns).fit(rows)
        np.testing.assert_array_equal(from_file.p_sx_, from_frame.p_sx_)
        np.testing.assert_array_equal(from_file.mechanism_.channel, from_frame.mechanism_.channel)
        assert from_file.mechanism_.x_labels == from_frame.mechanism_.x_labels
        assert from_file.n_samples_seen_ == len(rows)
        n_effective = [fitted_of(t).training.effective_rows for t in (from_file, from_frame)]
        assert n_effective[0] == n_effective[1]
        assert from_file.to_json() != ""
        sample = pd.DataFrame(counted.sample(len(rows)).columns)
        sample["note"] = sample["note"].fillna("")
        pd.testing.assert_frame_equal(sample, rows, check_dtype=False)

    def test_columns_that_are_copied_are_judged(self, tmp_path):
        rows = people().drop(columns="zip")
        rows["twin"] = rows["sex"]
        rows.to_csv(tmp_path / "in.csv", index=False)
        with (
            read_from(tmp_path / "in.csv") as table,
            pytest.warns(PrivacyLeakWarning, match=r"allows: twin\."),
        ):
            fit_source(settings_of(funnel()), table)

    @pytest.mark.parametrize("name", ["in.tsv", "in.csv.gz", "in.tsv.gz", "in.parquet"])
    @pytest.mark.parametrize("out", ["out.csv", "out.tsv.gz", "out.parquet"])
    def test_every_kind_into_every_kind(self, tmp_path, name, out):
        rows = people().drop(columns="age")
        source, target = tmp_path / name, tmp_path / out
        _write(rows, source)
        assert sanitized(funnel(), source, target) == len(rows)
        released = _read(target)
        assert list(released) == ["zip", "band", "note"]
        assert released["zip"].tolist() == rows["zip"].tolist()
        assert released["note"].fillna("").tolist() == rows["note"].tolist()
        assert set(released["band"]) <= {"low", "mid", "high"}

    def test_a_latin_1_file(self, tmp_path):
        rows = people()[["sex", "band", "note"]].replace({"low": "tief", "high": "höher"})
        rows.to_csv(tmp_path / "in.csv", index=False, encoding="latin-1")
        with pytest.raises(ValueError, match="not in utf-8: name its encoding"):
            sanitized(funnel(), tmp_path / "in.csv", tmp_path / "out.csv")
        sanitized(funnel(), tmp_path / "in.csv", tmp_path / "out.csv", encoding="latin-1")
        released = pd.read_csv(tmp_path / "out.csv", encoding="latin-1")
        assert "höher" in set(released["band"])

    def test_another_kind_of_text_in_the_same_encoding(self, tmp_path):
        rows = people()[["sex", "band", "note"]].replace({"low": "tief", "plain": "höher"})
        rows.to_csv(tmp_path / "in.csv", index=False, encoding="latin-1", sep="\t")
        options = {"encoding": "latin-1", "delimiter": "\t"}
        sanitized(funnel(), tmp_path / "in.csv", tmp_path / "out.tsv", **options)
        released = pd.read_csv(tmp_path / "out.tsv", encoding="latin-1", sep="\t")
        assert released["note"].fillna("").tolist() == rows["note"].tolist()

    def test_columns_in_another_order(self, tmp_path):
        rows = people()
        transformer = funnel().fit(rows.drop(columns=["zip", "age"]))
        rows[["note", "band", "sex"]].to_csv(tmp_path / "in.csv", index=False)
        transform_file(transformer, tmp_path / "in.csv", tmp_path / "out.csv")
        released = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
        assert list(released) == ["band", "note"]
        assert released["note"].tolist() == rows["note"].tolist()

    def test_a_seed_does_not_repeat_its_noise_in_every_block(self, tmp_path):
        transformer = funnel(epsilon=0, random_state=0).fit(people()[["sex", "band"]])
        mixed = transformer.mechanism_.channel.max(axis=1).argmin()
        rows = pd.DataFrame({"band": [transformer.mechanism_.x_labels[mixed]] * 4000})
        rows.to_csv(tmp_path / "in.csv", index=False)
        transform_file(transformer, tmp_path / "in.csv", tmp_path / "out.csv")
        released = pd.read_csv(tmp_path / "out.csv")["band"].to_numpy()
        assert len(set(released)) > 1
        for lag in range(50, 500):  # a block has some 160 rows
            assert (released[:1000] != released[lag : lag + 1000]).any()

    @pytest.mark.parametrize("output", ["symbol", "posterior"])
    def test_other_outputs(self, tmp_path, output):
        people().to_csv(tmp_path / "in.csv", index=False)
        transformer = funnel(output=output)
        sanitized(transformer, tmp_path / "in.csv", tmp_path / "out.csv")
        released = pd.read_csv(tmp_path / "out.csv")
        names = {"symbol": ["band"], "posterior": ["band_high", "band_low", "band_mid"]}[output]
        assert list(released) == ["zip", *names, "age", "note"]
        assert list(transformer.get_feature_names_out()) == list(released)
        if output == "posterior":
            np.testing.assert_allclose(released[names].sum(axis=1), 1)

    def test_numbers_with_edges_beyond_the_limit(self, tmp_path, monkeypatch):
        rows = people()
        rows["age"] = np.random.default_rng(0).normal(size=len(rows)) + (rows["sex"] == "m")
        rows.to_csv(tmp_path / "in.csv", index=False)
        monkeypatch.setattr(tally, "MOST_DISTINCT", 100)
        with pytest.raises(ValueError, match="More than 100 distinct combinations"):
            sanitized(funnel(columns=["age"]), tmp_path / "in.csv", tmp_path / "out.csv")
        edges = [-np.inf, -0.5, 0.5, np.inf]
        transformer = funnel(columns=["age"], n_bins={"age": edges})
        sanitized(transformer, tmp_path / "in.csv", tmp_path / "out.csv")
        whole = funnel(columns=["age"], n_bins={"age": edges}, remainder="drop").fit(rows)
        np.testing.assert_array_equal(transformer.p_sx_, whole.p_sx_)
        shown = pd.read_csv(tmp_path / "out.csv", dtype=str)["age"].map(float).unique()
        assert len(shown) == 3
        assert set(shown) <= set(rows["age"])

    def test_edges_without_a_name_are_for_x(self, tmp_path):
        rows = people()
        rows.to_csv(tmp_path / "in.csv", index=False)
        settings = {"columns": ["age"], "n_bins": [0, 30, 60, 100], "epsilon": 0}
        transformer = funnel(**settings)
        sanitized(transformer, tmp_path / "in.csv", tmp_path / "out.csv")
        whole = funnel(**settings, remainder="drop").fit(rows)
        np.testing.assert_array_equal(transformer.p_sx_, whole.p_sx_)

    def test_long_texts_of_s_and_x(self, tmp_path):
        rows = people(120)[["sex", "band"]] + "a" * 300
        rows["note"] = "b" * 5000
        rows.to_csv(tmp_path / "in.csv", index=False)
        transformer = funnel()
        with read_from(tmp_path / "in.csv") as table:
            fitted, sample = fit_source(settings_of(transformer), table)
        set_fitted(transformer, fitted)
        assert transformer.transform(sample)["band"].isin(rows["band"]).all()
        assert sample["note"].str.len().max() < 300

    def test_what_is_missing_is_a_value(self, tmp_path):
        rows = people()
        rows.loc[::3, "band"] = ""
        rows.loc[::5, "sex"] = ""
        rows.to_csv(tmp_path / "in.csv", index=False)
        transformer = funnel(epsilon=10.0)
        sanitized(transformer, tmp_path / "in.csv", tmp_path / "out.csv")
        assert transformer.mechanism_.s_labels == ("f", "m", None)
        released = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)["band"]
        assert released.tolist() == rows["band"].tolist()  # no noise at such a budget

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("\n\n", "is empty"),
            ("sex,band\n", "has no rows"),
            (
                "sex,band,sex\nm,a,b\n",
                "columns 1 and 3 have the same name: if there is no header, use header=False",
            ),
            ("sex,band\nm,a\nm\n", "line 3 has 1 fields where the first line has 2"),
            ('sex,band\nm,a\nm,"b\n', "line 3 does not end: is a quote missing"),
            (
                "sex;band\nm;a\n",
                "only one column, with ';' in its name: is that the delimiter",
            ),
            ("\ufeffsex,band\nm,\udcff\n", "not in utf-8"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path, text, message):
        (tmp_path / "in.csv").write_text(text, encoding="utf-8", errors="surrogateescape")
        with pytest.raises(ValueError, match=message):
            sanitized(funnel(), tmp_path / "in.csv", tmp_path / "out.csv")
        assert os.listdir(tmp_path) == ["in.csv"]

    def test_no_value_is_shown_where_it_may_be_sensitive(self, tmp_path):
        (tmp_path / "in.csv").write_bytes(b"sex,band\nHIV\xe9,a\n")
        with pytest.raises(ValueError, match="the column 'sex' is not in utf-8") as caught:
            sanitized(funnel(), tmp_path / "in.csv", tmp_path / "out.csv")
        assert "HIV" not in str(caught.value)
        (tmp_path / "in.csv").write_bytes(b"sex,band\rHIV,a\rHIV,b\r")
        with pytest.raises(ValueError, match="ends lines with CR alone") as caught:
            sanitized(funnel(), tmp_path / "in.csv", tmp_path / "out.csv")
        assert "HIV" not in str(caught.value)
        (tmp_path / "in.csv").write_bytes(b"sex,band\nHIV,a\nHIV,b\n")
        numeric = funnel(n_bins={"sex": [-np.inf, 1, np.inf]})
        with pytest.raises(ValueError, match="numbers are expected: 'sex' in 2 rows") as caught:
            sanitized(numeric, tmp_path / "in.csv", tmp_path / "out.csv")
        assert "HIV" not in str(caught.value)

    def test_large_integers_are_told_apart(self, tmp_path):
        rng = np.random.default_rng(0)
        codes = np.array(["10000000000000000001", "10000000000000000002"])[
            rng.integers(2, size=400)
        ]
        rows = pd.DataFrame({"sex": codes, "band": np.where(rng.random(400) < 0.9, codes, "5")})
        rows.to_csv(tmp_path / "in.csv", index=False)
        transformer = funnel(epsilon=0.01)
        sanitized(transformer, tmp_path / "in.csv", tmp_path / "out.csv")
        assert transformer.p_sx_.shape == (2, 3)
        assert set(pd.read_csv(tmp_path / "out.csv", dtype=str)["band"]) <= set(rows["band"])

    def test_an_empty_field_alone_in_its_row_is_no_empty_line(self, tmp_path):
        rows = people()[["band", "sex"]]
        rows.loc[::3, "band"] = ""
        rows.to_csv(tmp_path / "in.csv", index=False)
        sanitized(funnel(epsilon=10.0), tmp_path / "in.csv", tmp_path / "out.csv")
        released = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
        assert released["band"].tolist() == rows["band"].tolist()

    @pytest.mark.parametrize("damage", ["not gzip", "cut"])
    def test_a_damaged_file_is_named(self, tmp_path, damage):
        text = people().to_csv(index=False).encode()
        content = text if damage == "not gzip" else gzip.compress(text)[:-200]
        (tmp_path / "in.csv.gz").write_bytes(content)
        with pytest.raises(ValueError, match=r"in\.csv\.gz is damaged"):
            sanitized(funnel(), tmp_path / "in.csv.gz", tmp_path / "out.csv")
        people().to_parquet(tmp_path / "in.parquet")
        content = bytearray((tmp_path / "in.parquet").read_bytes())
        content[100:400] = bytes(300)
        (tmp_path / "in.parquet").write_bytes(content)
        with pytest.raises(ValueError, match=r"in\.parquet is damaged"):
            sanitized(funnel(), tmp_path / "in.parquet", tmp_path / "out.csv")

    @pytest.mark.parametrize("encoding", ["iso2022_jp", "hz", "utf-16", "cp037"])
    def test_encodings_whose_characters_may_hold_a_delimiter(self, tmp_path, encoding):
        (tmp_path / "in.csv").write_bytes("sex,band\nm,あ\n".encode("iso2022_jp"))
        with (
            pytest.raises(ValueError, match=f"{encoding} .* convert the file to UTF-8"),
            read_from(tmp_path / "in.csv", encoding=encoding),
        ):
            pass

    def test_utf_16_and_broken_parquet(self, tmp_path):
        (tmp_path / "in.csv").write_text("sex,band\nm,a\n", encoding="utf-16")
        (tmp_path / "in.parquet").write_text("sex,band\nm,a\n")
        for name, text in [("in.csv", "UTF-16"), ("in.parquet", "is not a Parquet file")]:
            with pytest.raises(ValueError, match=text), read_from(tmp_path / name):
                pass

    def test_the_same_rows_give_the_same_compressed_bytes(self, tmp_path):
        people().to_csv(tmp_path / "in.csv", index=False)
        outs = [tmp_path / "1.csv.gz", tmp_path / "2.csv.gz"]
        for out in outs:
            sanitized(funnel(random_state=0, epsilon=10.0), tmp_path / "in.csv", out)
        assert outs[0].read_bytes() == outs[1].read_bytes()
        assert gzip.decompress(outs[0].read_bytes()).startswith(b"zip,band")


class TestParquet:
    def test_types_stay(self, tmp_path):
        rows = people()
        rows["when"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rows.index % 3, unit="D")
        rows["level"] = pd.Categorical(rows["band"], ["low", "mid", "high"], ordered=True)
        rows["small"] = (rows.index % 4).astype("int8")
        rows.to_parquet(tmp_path / "in.parquet")
        transformer = funnel(columns=["small", "when"])
        sanitized(transformer, tmp_path / "in.parquet", tmp_path / "out.parquet")
        released = pd.read_parquet(tmp_path / "out.parquet")
        assert "sex" not in released
        for name in ("when", "small", "age"):
            assert released[name].dtype == rows[name].dtype
        # A dictionary may list values of rows that are elsewhere.
        assert released["level"].tolist() == rows["level"].tolist()
        assert pq.read_schema(tmp_path / "out.parquet").field("level").type == pa.string()
        assert released["age"].tolist() == rows["age"].tolist()

    def test_long_texts_are_cut_in_a_sample_only(self, tmp_path):
        rows = people()[["sex", "band", "note"]]
        rows["note"] = [f"{i % 7}" * 5000 for i in range(len(rows))]
        rows.to_parquet(tmp_path / "in.parquet")
        with read_from(tmp_path / "in.parquet") as table:
            _, sample = fit_source(settings_of(funnel()), table, with_sample=True)
        assert sample["note"].nunique() == 7
        assert sample["note"].str.len().max() < 300
        sanitized(funnel(), tmp_path / "in.parquet", tmp_path / "out.parquet")
        assert pd.read_parquet(tmp_path / "out.parquet")["note"].tolist() == rows["note"].tolist()

    def test_lists_and_structs_are_copied(self, tmp_path):
        rows = people()[["sex", "band"]]
        rows["nested"] = [{"a": i % 2, "b": [i % 3]} for i in range(len(rows))]
        rows["raw"] = [bytes([i % 2]) for i in range(len(rows))]
        rows.to_parquet(tmp_path / "in.parquet")
        sanitized(funnel(), tmp_path / "in.parquet", tmp_path / "out.parquet")
        released = pq.read_table(tmp_path / "out.parquet").to_pydict()
        assert released["nested"] == rows["nested"].tolist()
        assert released["raw"] == rows["raw"].tolist()
        sanitized(funnel(), tmp_path / "in.parquet", tmp_path / "out.csv")
        texts = pd.read_csv(tmp_path / "out.csv", dtype=str)
        assert texts["nested"][5] == '{"a": 1, "b": [2]}'
        assert texts["raw"].tolist() == [f"{i % 2:02x}" for i in range(len(rows))]

    def test_nothing_else_in_the_file_names_the_sensitive_column(self, tmp_path):
        people().to_parquet(tmp_path / "in.parquet")
        sanitized(funnel(), tmp_path / "in.parquet", tmp_path / "out.parquet")
        assert b"sex" not in (tmp_path / "out.parquet").read_bytes()


def _write(rows, path):
    if path.suffix == ".parquet":
        rows.to_parquet(path)
    else:
        rows.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")


def _read(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, dtype=str, sep="\t" if ".tsv" in path.name else ",")


class TestFunctions:
    def test_a_file_is_fitted_and_transformed_like_a_frame(self, tmp_path):
        rows = people()[["sex", "band", "age"]]
        rows.to_csv(tmp_path / "in.tsv", index=False, sep="\t")
        transformer = funnel(remainder="drop", columns=["band", "age"], n_bins=3)
        assert fit_file(transformer, tmp_path / "in.tsv") is transformer
        whole = funnel(remainder="drop", columns=["band", "age"], n_bins=3).fit(rows)
        np.testing.assert_array_equal(transformer.p_sx_, whole.p_sx_)
        assert transform_file(transformer, tmp_path / "in.tsv", tmp_path / "out.parquet") == 600
        released = pd.read_parquet(tmp_path / "out.parquet")
        assert list(released) == ["band", "age"]
        assert released["age"].isin(rows["age"]).all()
        with pytest.raises(FileExistsError):
            transform_file(transformer, tmp_path / "in.tsv", tmp_path / "out.parquet")

    @pytest.mark.parametrize("name", ["fresh.csv", "fresh.parquet"])
    @pytest.mark.parametrize(
        "options",
        [
            {"columns": ["band", "age"], "n_bins": 3},
            {"columns": ["band", "age"], "alphabet": TreeCells(max_cells=6)},
            {"columns": ["band"], "utility": "target"},
        ],
        ids=["values", "cells", "target"],
    )
    def test_a_file_is_evaluated_and_certified_like_a_frame(self, tmp_path, name, options):
        rows = people()[["sex", "band", "age"]]
        design, fresh, path = rows[::2], rows[1::2], tmp_path / name
        fresh.to_csv(path, index=False) if name.endswith("csv") else fresh.to_parquet(path)
        target = "age" if "utility" in options else None
        fitted = funnel(remainder="drop", **options).fit(design, target and design[target])
        here = fitted.evaluate(fresh, target and fresh[target])
        there = evaluate_file(fitted, path, target=target)
        np.testing.assert_array_equal(here.p_sx, there.p_sx)
        assert here.normalized_utility == pytest.approx(there.normalized_utility, rel=1e-12)
        for transformer in (fitted, PrivacyFunnelTransformer.from_json(fitted.to_json())):
            here = transformer.set_params(sensitive=["sex"]).certify(fresh)
            there = certify_file(transformer, path)
            np.testing.assert_array_equal(here.leakage_bound, there.leakage_bound)
        with pytest.raises(ValueError, match="loaded without the values of S"):
            evaluate_file(transformer, path)

    def test_encodings_and_delimiters_are_checked(self, tmp_path):
        people()[["band", "sex"]].to_csv(tmp_path / "in.csv", index=False, encoding="utf-8-sig")
        transformer = fit_file(funnel(), tmp_path / "in.csv", encoding="utf-8-sig")
        transform_file(transformer, tmp_path / "in.csv", tmp_path / "o.csv", encoding="utf-8-sig")
        assert (tmp_path / "o.csv").read_bytes().count(b"\xef\xbb\xbf") == 1
        for wrong in ({"delimiter": ";;"}, {"delimiter": ""}, {"encoding": "utf-16"}):
            with pytest.raises(ValueError, match="ASCII"):
                fit_file(funnel(), tmp_path / "in.csv", **wrong)

    @pytest.mark.parametrize("sensitive", [None, ["sx"]])
    def test_the_sensitive_column_is_in_the_file(self, tmp_path, sensitive):
        people().to_csv(tmp_path / "in.csv", index=False)
        with pytest.raises(ValueError, match="sensitive"):
            fit_file(funnel(sensitive=sensitive), tmp_path / "in.csv")


class TestTextsAmongNumbers:
    @pytest.fixture
    def table(self, tmp_path):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"sex": rng.choice(["f", "m"], 300)})
        table["age"] = rng.integers(20, 60, 300).astype(str)
        table["size"] = rng.integers(100, 140, 300).astype(str)
        table.to_csv(tmp_path / "good.csv", index=False)
        table.loc[[4, 9], "age"] = ["SECRET", "inf"]
        table.loc[[0, *range(20, 26)], "size"] = "?"
        table.to_csv(tmp_path / "bad.csv", index=False)
        return tmp_path

    def said_of(self, path, **options):
        settings = settings_of(funnel(alphabet="values", **options))
        with read_from(path) as source, warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            FileTable(source).inputs(settings, None, ())
        return " ".join(str(each.message) for each in found)

    def test_a_warning_names_all_of_them(self, table):
        said = self.said_of(table / "bad.csv", columns=["age", "size"])
        assert "'age' in rows 5 and 10; 'size' in rows 1, 21, 22, 23, 24 and 2 more (row 1" in said
        assert "SECRET" not in said
        assert "read as texts" not in self.said_of(table / "good.csv", columns=["age", "size"])

    def test_so_does_an_error_where_numbers_are_needed(self, table):
        options = {"columns": ["age", "size"], "n_bins": {"age": 3, "size": 3}}
        estimator = fit_file(funnel(confidence=0.95, **options), table / "good.csv")
        with pytest.raises(
            ValueError, match=r"'age' in rows 5 and 10; 'size' in rows 1,"
        ) as found:
            transform_file(estimator, table / "bad.csv", table / "out.csv")
        assert "SECRET" not in str(found.value)
        assert not (table / "out.csv").exists()

    def test_rows_of_the_secret_are_only_counted(self, table):
        said = self.said_of(table / "bad.csv", sensitive="age", columns=["size"])
        assert "'age' in 2 rows" in said
        assert "rows 5" not in said
