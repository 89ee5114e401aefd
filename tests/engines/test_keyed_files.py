"""Keyed release of files: by its id and the key, a row gets the same Y in every file."""

import gzip
import json
import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning, PrivacyReport
from skprivacy.cli import main
from skprivacy.engines import csv_text as delimited
from skprivacy.engines import files as repeated_ids
from skprivacy.engines import parquet_files as parquet
from skprivacy.engines.files import RepeatedIds
from skprivacy.files import transform_file
from skprivacy.report.appendix import FileRecord
from skprivacy.report.layout import Section

KEY = bytes(range(32))
KEYED = {"record_ids": "id", "secret_key": KEY}


def people(n=600):
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=n)
    return pd.DataFrame(
        {
            "id": [f"{number:04d}" for number in rng.permutation(n)],
            "sex": np.where(sex, "m", "f"),
            "band": np.array(["low", "mid", "high"])[rng.binomial(2, 0.3 + 0.4 * sex)],
            "age": rng.integers(18, 80, size=n),
        }
    )


@pytest.fixture(scope="module")
def rows():
    return people()


@pytest.fixture(scope="module")
def fitted(rows):
    """Two columns, one of them in bins and with pooled values: both kinds of noise are used."""
    return PrivacyFunnelTransformer(
        0.01, sensitive="sex", columns=["band", "age"], n_bins=3, handle_unknown="error"
    ).fit(rows)


@pytest.fixture(scope="module")
def passing(rows, fitted):
    """The same transformer, which lets ids through."""
    with pytest.warns(PrivacyLeakWarning, match="id reveal about S cannot be judged"):
        passing = clone(fitted).set_params(remainder=["id"]).fit(rows)
    assert (passing.mechanism_.channel == fitted.mechanism_.channel).all()
    return passing


def write(rows, path):
    if path.suffix == ".parquet":
        rows.to_parquet(path)
    else:
        rows.to_csv(path, index=False)


def read(path):
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


class TestFiles:
    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch):
        monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)
        monkeypatch.setattr(parquet, "BATCH_ROWS", 70)

    @pytest.mark.parametrize("name", ["in.csv", "in.csv.gz", "in.parquet"])
    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    def test_it_is_what_transform_gives(self, tmp_path, rows, fitted, name, output):
        path, out = tmp_path / name, tmp_path / f"out{name[2:]}"
        write(rows, path)
        shown = PrivacyFunnelTransformer.from_json(fitted.to_json()).set_params(output=output)
        assert transform_file(shown, path, out, **KEYED) == len(rows)
        released = read(out)
        expected = shown.transform(rows, **KEYED)
        if output == "symbol":
            released, expected = released.astype(str), expected.astype(str)
        pd.testing.assert_frame_equal(released, expected, check_dtype=False)

    @pytest.mark.parametrize("name", ["in.csv", "in.csv.gz", "in.parquet"])
    def test_two_releases_are_the_same_bytes(self, tmp_path, rows, fitted, name):
        write(rows, tmp_path / name)
        outs = [tmp_path / f"{number}-{name}" for number in range(4)]
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        for funnel, out in zip([fitted, fitted, loaded], outs, strict=False):
            transform_file(funnel, tmp_path / name, out, **KEYED)
        transform_file(fitted, tmp_path / name, outs[3], record_ids="id", secret_key=bytes(32))
        contents = [out.read_bytes() for out in outs]
        assert contents[0] == contents[1] == contents[2] != contents[3]

    def test_blocks_and_kinds_of_file_do_not_matter(self, tmp_path, rows, fitted, monkeypatch):
        write(rows, tmp_path / "in.csv")
        write(rows, tmp_path / "in.parquet")
        contents = set()
        for size in (100, 1000, 1 << 22):
            monkeypatch.setattr(delimited, "BLOCK_BYTES", size)
            monkeypatch.setattr(parquet, "BATCH_ROWS", size)
            for name in ("in.csv", "in.parquet"):
                transform_file(fitted, tmp_path / name, tmp_path / "out.csv", force=True, **KEYED)
                contents.add((tmp_path / "out.csv").read_bytes())
        assert len(contents) == 1

    def test_the_order_and_the_other_rows_do_not_matter(self, tmp_path, rows, fitted):
        some = rows.sample(frac=0.7, random_state=0)
        write(rows, tmp_path / "all.csv")
        some[["band", "id", "age"]].to_csv(tmp_path / "some.csv", index=False, quoting=1)
        for name in ("all", "some"):
            transform_file(fitted, tmp_path / f"{name}.csv", tmp_path / f"{name}-out.csv", **KEYED)
        every = read(tmp_path / "all-out.csv").set_index(rows["id"])
        again = read(tmp_path / "some-out.csv").set_index(some["id"])
        pd.testing.assert_frame_equal(every.loc[again.index], again)

    def test_fresh_noise_differs(self, tmp_path, rows, fitted):
        write(rows, tmp_path / "in.csv")
        for out in ("1.csv", "2.csv"):
            transform_file(fitted, tmp_path / "in.csv", tmp_path / out)
        assert (tmp_path / "1.csv").read_bytes() != (tmp_path / "2.csv").read_bytes()

    def test_ids_of_text_are_texts_and_those_of_parquet_have_a_type(self, tmp_path, rows, fitted):
        numbered = rows.assign(id=rows["id"].astype(int))
        as_texts = fitted.transform(
            numbered, record_ids=numbered["id"].astype(str), secret_key=KEY
        )
        as_numbers = fitted.transform(numbered, **KEYED)
        assert not as_texts.equals(as_numbers)
        for name, expected in [("in.csv", as_texts), ("in.parquet", as_numbers)]:
            write(numbered, tmp_path / name)
            transform_file(fitted, tmp_path / name, tmp_path / f"out-{name}", **KEYED)
            released = read(tmp_path / f"out-{name}")
            pd.testing.assert_frame_equal(released, expected, check_dtype=False)
        zeros = fitted.transform(rows, **KEYED)
        assert not zeros.equals(as_texts)

    def test_dictionaries_of_parquet(self, tmp_path, rows, fitted):
        table = pa.Table.from_pandas(rows)
        ids = table["id"].dictionary_encode()
        pq.write_table(table.set_column(0, "id", ids), tmp_path / "in.parquet")
        transform_file(fitted, tmp_path / "in.parquet", tmp_path / "out.csv", **KEYED)
        expected = fitted.transform(rows, **KEYED)
        pd.testing.assert_frame_equal(read(tmp_path / "out.csv"), expected, check_dtype=False)

    def test_the_ids_are_copied_only_if_they_are_passed_through(
        self, tmp_path, rows, fitted, passing
    ):
        write(rows, tmp_path / "in.csv")
        transform_file(fitted, tmp_path / "in.csv", tmp_path / "drop.csv", **KEYED)
        transform_file(passing, tmp_path / "in.csv", tmp_path / "pass.csv", **KEYED)
        assert list(read(tmp_path / "drop.csv")) == ["band", "age"]
        copied = pd.read_csv(tmp_path / "pass.csv", dtype={"id": str})
        assert list(copied) == ["id", "band", "age"]
        assert copied["id"].tolist() == rows["id"].tolist()
        pd.testing.assert_frame_equal(copied[["band", "age"]], read(tmp_path / "drop.csv"))

    def test_an_empty_file(self, tmp_path, rows, fitted):
        for name in ("in.csv", "in.parquet"):
            write(rows[:0], tmp_path / name)
            assert transform_file(fitted, tmp_path / name, tmp_path / f"out-{name}", **KEYED) == 0


class TestWhatIsWrong:
    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch):
        monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)
        monkeypatch.setattr(parquet, "BATCH_ROWS", 70)

    @pytest.mark.parametrize("name", ["in.csv", "in.csv.gz", "in.parquet"])
    @pytest.mark.parametrize("kind", [str, int])
    def test_missing_ids_are_counted_in_the_whole_file(self, tmp_path, rows, fitted, name, kind):
        ids = rows["id"].astype(kind).astype(object)
        ids[[3, 4, 300, 599]] = None
        frame = rows.assign(id=ids if kind is str else ids.astype("Int64"))
        self.fails(tmp_path, frame, fitted, name, r"'id', which is missing in 4 of the 600 rows")

    @pytest.mark.parametrize("name", ["in.csv", "in.parquet"])
    def test_ids_that_come_again_in_another_block(self, tmp_path, rows, fitted, name):
        frame = rows.copy()
        frame.loc[[500, 501], "id"] = rows.loc[3, "id"]
        error = self.fails(tmp_path, frame, fitted, name, "unique in .*: 2 rows have the id of an")
        assert rows.loc[3, "id"] not in error

    def fails(self, folder, frame, fitted, name, match, **keyed):
        write(frame, folder / name)
        with pytest.raises((TypeError, ValueError), match=match) as caught:
            transform_file(fitted, folder / name, folder / f"out-{name}", **KEYED | keyed)
        assert os.listdir(folder) == [name]
        return str(caught.value)

    @pytest.mark.parametrize(
        ("keyed", "match"),
        [
            ({"record_ids": "key"}, "'record_ids' parameter .* names the column 'key', which"),
            ({"record_ids": "band"}, "'band', which is released or sensitive itself"),
            ({"record_ids": "sex"}, "'sex', which is released or sensitive itself"),
            (
                {"record_ids": 0},
                "must be the name of a column of .*in.csv. Got a value of type int",
            ),
            ({"record_ids": None}, "secret_key without record_ids"),
            ({"secret_key": None}, "record_ids without secret_key"),
            ({"secret_key": b"hunter2"}, "must have at least 16 bytes"),
            ({"secret_key": "hunter2" * 5}, "must be bytes"),
        ],
    )
    def test_arguments(self, tmp_path, rows, fitted, keyed, match):
        assert "hunter2" not in self.fails(tmp_path, rows, fitted, "in.csv", match, **keyed)

    def test_ids_that_are_no_ids(self, tmp_path, rows, fitted):
        frame = rows.assign(id=rows["id"].astype(float))
        self.fails(tmp_path, frame, fitted, "in.parquet", "all integers or all texts")


class TestRepeatedIds:
    @pytest.mark.parametrize("run_rows", [1 << 20, 1000, 90])
    def test_it_counts_as_pandas_does(self, monkeypatch, run_rows):
        monkeypatch.setattr(repeated_ids, "RUN_ROWS", run_rows)
        rng = np.random.default_rng(0)
        names = rng.integers(2**64, size=3000, dtype=np.uint64)
        ids = names[rng.integers(3000, size=5000)]
        with RepeatedIds() as seen:
            for begin in range(0, 5000, 70):
                seen.add(ids[begin : begin + 70])
            assert seen.n_repeated() == pd.Series(ids).duplicated().sum() > 100
            assert (seen._file is None) == (run_rows > 5000)
        assert seen._file is None or seen._file.closed

    def test_no_rows(self):
        with RepeatedIds() as seen:
            assert seen.n_repeated() == 0


def run(*arguments):
    return main([str(argument) for argument in arguments])


DESIGN = ["--sensitive", "sex", "--columns", "band", "--epsilon", 0.01]
OPTIONS = ["--record-ids", "id", "--key-file", "secret.key"]


class TestCommands:
    @pytest.fixture(autouse=True)
    def folder(self, rows, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        rows.to_csv("in.csv", index=False)
        assert run("key", "secret.key") == 0
        self.said = capsys.readouterr().out

    def test_a_key_is_written_once_and_shown_never(self, capsys):
        key = Path("secret.key").read_text()
        assert key not in self.said
        assert len(bytes.fromhex(key)) == 32
        assert stat.S_IMODE(os.stat("secret.key").st_mode) == 0o600
        assert run("key", "secret.key") == 1
        assert "a key is never replaced" in capsys.readouterr().err
        assert Path("secret.key").read_text() == key
        assert run("key", "-") == 1
        assert run("key", "no/secret.key") == 1
        assert run("key", "other.key", "--json") == 0
        assert json.loads(capsys.readouterr().out)["key_file"] == "other.key"
        assert Path("other.key").read_text() != key

    def test_sanitize_and_apply_give_the_same_file(self, rows, capsys, monkeypatch):
        def short(*_, notes, input_file, **__):
            assert input_file == FileRecord("in.csv")
            return PrivacyReport("Short", [Section("What", notes)])

        monkeypatch.setattr(PrivacyReport, "from_estimator", short)
        beside = ["--save-mechanism", "m.json", "--report", "r.html", "--no-input-hash"]
        assert run("sanitize", "in.csv", "1.csv", *DESIGN, *OPTIONS, *beside) == 0
        said = capsys.readouterr()
        assert run("sanitize", "in.csv", "2.csv", *DESIGN, *OPTIONS) == 0
        assert run("apply", "m.json", "in.csv", "3.csv.gz", *OPTIONS) == 0
        assert "comes from id and a secret key" in capsys.readouterr().out
        assert run("apply", "m.json", "in.csv", "4.csv") == 0
        assert "secret key" not in capsys.readouterr().out
        contents = [Path(name).read_bytes() for name in ("1.csv", "2.csv", "4.csv")]
        contents.append(gzip.decompress(Path("3.csv.gz").read_bytes()))
        assert contents[0] == contents[1] == contents[3] != contents[2]
        key = Path("secret.key").read_text().strip()
        funnel = PrivacyFunnelTransformer.from_json(Path("m.json").read_text())
        keyed = {"record_ids": rows["id"], "secret_key": bytes.fromhex(key)}
        expected = funnel.transform(rows, **keyed)
        assert read(Path("1.csv"))["band"].tolist() == expected["band"].tolist()
        page = Path("r.html").read_text()
        assert "The noise comes from id and a secret key" in page
        assert key not in "".join([page, Path("m.json").read_text(), *said])

    def test_facts_for_machines(self, capsys):
        assert run("sanitize", "in.csv", "1.csv", *DESIGN, *OPTIONS, "--json") == 0
        assert json.loads(capsys.readouterr().out)["record_ids"] == "id"
        assert run("sanitize", "in.csv", "2.csv", *DESIGN, "--json") == 0
        assert json.loads(capsys.readouterr().out)["record_ids"] is None

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
    def test_a_key_that_others_can_read_gets_a_warning(self, capsys, mode):
        os.chmod("secret.key", mode)
        assert run("sanitize", "in.csv", "1.csv", *DESIGN, *OPTIONS) == 0
        warned = capsys.readouterr().err
        assert warned.count("secret.key can be read by other users") == 1
        os.chmod("secret.key", 0o400)
        assert run("sanitize", "in.csv", "2.csv", *DESIGN, *OPTIONS) == 0
        assert "other users" not in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("content", "is_key"),
        [
            (b"0123456789abcdef" * 2, True),
            (b"0123456789ABCDEF" * 2 + b"\r\n", True),
            (b"ab" * 400 + b"\n\n", True),
            (b"ab" * 15, False),
            (b"ab" * 16 + b"c", False),
            (b"ab" * 16 + b"\n" + b"ab" * 16, False),
            (b"hunter2" * 8, False),
            (bytes(range(32)), False),
            (b"ab" * 4000, False),
            (b"", False),
        ],
    )
    def test_what_a_key_file_holds(self, capsys, content, is_key):
        Path("own.key").write_bytes(content)
        os.chmod("own.key", 0o600)
        options = ["--record-ids", "id", "--key-file", "own.key"]
        assert run("sanitize", "in.csv", "1.csv", *DESIGN, *options) == (not is_key)
        error = capsys.readouterr().err
        assert ("own.key does not hold a key" in error) == (not is_key)
        assert "hunter2" not in error

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            (OPTIONS[:2], "--record-ids and --key-file go together"),
            (OPTIONS[2:], "--record-ids and --key-file go together"),
            ([*OPTIONS, "--record-ids", "key"], "--record-ids names the column 'key', which"),
            (
                [*OPTIONS, "--record-ids", "sex"],
                "--record-ids names the column 'sex', which is rele",
            ),
            ([*OPTIONS, "--record-ids", "age"], "--record-ids names 'age', which must be unique"),
            ([*OPTIONS, "--key-file", "no.key"], "no.key: No such file or directory"),
            ([*OPTIONS, "--report", "secret.key", "--force"], "secret.key is the key itself"),
        ],
    )
    def test_what_cannot_be_done(self, capsys, options, text):
        assert run("sanitize", "in.csv", "1.csv", *DESIGN, *options) == 1
        *_, error = capsys.readouterr().err.splitlines()
        assert error.startswith("skprivacy: error: ")
        assert text in error
        assert sorted(os.listdir()) == ["in.csv", "secret.key"]

    def test_missing_ids(self, rows, capsys):
        frame = rows.copy()
        frame.loc[5:7, "id"] = ""
        frame.to_csv("gaps.csv", index=False)
        assert run("sanitize", "gaps.csv", "1.csv", *DESIGN, *OPTIONS) == 1
        text = "--record-ids names 'id', which is missing in 3 of the 600 rows of gaps.csv"
        assert text in capsys.readouterr().err
