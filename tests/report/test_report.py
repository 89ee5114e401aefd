"""The report, as text and in a real browser."""

import hashlib
import inspect
import json
import re
import shutil
from base64 import b64decode

import matplotlib as mpl
import matplotlib.pyplot
import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, people, quiet_fit
from numpy.testing import assert_allclose

import skprivacy
from skprivacy import PrivacyFunnelTransformer, PrivacyReport, TreeCells, design_mechanism
from skprivacy.describing.numbers import limit
from skprivacy.fitting.fitted_estimator import fitted_of, settings_of
from skprivacy.measures import KL, AlphaLift
from skprivacy.metrics import population_leakage
from skprivacy.plotting import path_around
from skprivacy.report.appendix import WORDS, FileRecord, Handover, recipe
from skprivacy.report.attackers import best_attacker, singled_out, small_numbers
from skprivacy.report.columns import before_and_after, trend, values_of_columns
from skprivacy.report.layout import BLANK, as_text
from skprivacy.utilities import Distortion

mpl.use("agg")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def transformer():
    frame = people()[["sex", "band", "zip"]]
    with pytest.warns(UserWarning, match="zip"):
        return funnel(remainder="passthrough").fit(frame)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secret_folder")
    contents = {"people <2>.csv": b"sex,band\n", "released.csv": b"band\n"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


@pytest.fixture(scope="module")
def report(transformer, files):
    return report_of(transformer, files)


def report_of(transformer, files):
    return PrivacyReport.from_estimator(
        transformer,
        people(1500, seed=3)[["sex", "band", "zip"]],
        purpose="A <b>study</b>\nof bands",
        recipient="Example & Sons",
        input_file=files[0],
        output_file=str(files[1]),
        n_rows_out=2999,
        notes=["The board knows."],
    )


@pytest.fixture(scope="module")
def said(report):
    """The report as one line."""
    return flat(report)


def flat(report):
    return re.sub(r"\s+", " ", str(report))


@pytest.fixture(scope="module")
def page_file(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.save(path)
    return path


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


class TestText:
    def test_says_what_matters(self, report, said, transformer):
        text = str(report)
        mechanism = transformer.mechanism_
        for expected in (
            "Privacy report: band released, sex protected",
            "at most epsilon = 0.01",
            f"keeps {mechanism.normalized_utility:.1%} of the information in band",
            "3,000 rows",
            "measure of leakage kl, per output",
            "not differential privacy",
            "certified gap",
            f"sex correctly in {mechanism.attacker_accuracy:.1%} of the rows; a blind guess is "
            f"right in 52.2%. This release reaches {100 * mechanism.attacker_advantage:.2f} points "
            f"more than a blind guess; its budget allows at most",
            "worst released value, in nats",
            "population, 95% limit",
            "remainder: zip",
            "random_state",
            "skprivacy",
        ):
            assert expected in said
        assert re.search(r"zip( +\d+\.\d%){2} +[+-]\d+\.\d\d points +Bayes table", text)
        for measure in ("kl", "l1", "chi2", "max lift", "alpha lift, alpha 2", "lip", "parity"):
            assert re.search(rf"^  {measure} +\d\.\d{{4}}", text, re.MULTILINE)
        assert max(map(len, text.splitlines())) < 110

    def test_without_rows_there_is_no_attack(self, transformer):
        text = str(PrivacyReport.from_estimator(transformer))
        assert "No attack was tried: no model was trained to guess sex" in " ".join(text.split())
        assert "What leaks" in text

    def test_average_scope_targets_and_several_columns(self):
        frame = people()
        options = {"scope": "average", "utility": "target", "solver": "subset_merging"}
        transformer = funnel(0.05, columns=["band", "zip"], **options)
        transformer.fit(frame, frame["label"])
        text = re.sub(r"\s+", " ", str(PrivacyReport.from_estimator(transformer)))
        assert "band and zip released" in text
        assert "average over all released values" in text
        assert "of the information in band and zip about the target" in text
        assert "made coarser, without noise" in text

    def test_sensitive_features_beside_the_frame(self):
        frame = people(600)
        transformer = funnel(sensitive=None).fit(frame, sensitive_features=frame["sex"])
        report = PrivacyReport.from_estimator(transformer, frame, sensitive_features=frame["sex"])
        assert "sex protected" in str(report)
        assert "Attacked" in str(report)

    def test_labels_are_escaped(self):
        frame = people()
        frame["sex"] = frame["sex"].map({"f": "<b>f & f</b>", "m": "m"})
        frame = frame.rename(columns={"band": "<i>band</i>"})
        page = PrivacyReport.from_estimator(
            funnel(columns=["<i>band</i>"]).fit(frame)
        )._repr_html_()
        assert "<i>band" not in page
        assert "<b>f" not in page
        assert "&lt;i&gt;band" in page

    def test_the_seed_is_not_told(self):
        report = PrivacyReport.from_estimator(funnel(random_state=987_654).fit(people()))
        assert "987" not in str(report).replace(",", "")
        assert "whoever knows it can undo the noise" in re.sub(r"\s+", " ", str(report))
        unseeded = PrivacyReport.from_estimator(funnel(random_state=None).fit(people()))
        assert "undo the noise" not in str(unseeded)

    def test_few_rows_are_said_to_be_few(self):
        text = re.sub(r"\s+", " ", str(PrivacyReport.from_estimator(funnel().fit(people(300)))))
        assert "CAUTION: " in text
        assert "(95% confidence), above the budget of 0.01" in text
        assert "ask for a release with a confidence of 0.95" in text
        assert "far above the budget" in text
        many = re.sub(
            r"\s+", " ", str(PrivacyReport.from_estimator(funnel(0.1).fit(people(20_000))))
        )
        assert "far above" not in many

    def test_with_a_confidence_the_budget_holds_for_the_population(self):
        transformer = quiet_fit(funnel(0.1, confidence=0.9), people(600))
        limits = transformer.mechanism_.population_limit
        text = re.sub(r"\s+", " ", str(PrivacyReport.from_estimator(transformer)))
        for expected in (
            "- Fill in the purpose and the recipient under 'Signatures'. - Sign under",
            "population, 90% limit",
            f"0.1 {transformer.mechanism_.max_leakage:.4g} {limit(limits.max_leakage)}",
            "The certified gap is for these rows alone",
            "about the population the rows were drawn from, independently",
            "confidence 0.9 ",
        ):
            assert expected in text
        assert "for these rows only" not in text
        assert "far above" not in text

    def test_limits_are_about_weighted_rows(self):
        weights = np.where(np.arange(900) % 3, 1.0, 9.0)
        transformer = quiet_fit(funnel(2.0), people(900), sample_weight=weights)
        text = flat(PrivacyReport.from_estimator(transformer))
        limits = population_leakage(transformer)
        assert f"900 rows, worth {limits.n_samples} equally weighted ones" in text
        assert limit(limits.max_leakage) in text

    def test_the_curve_is_as_sure_as_the_release(self):
        transformer = quiet_fit(funnel(0.1, confidence=0.9), people(600))
        mechanism = transformer.mechanism_
        path = path_around(mechanism, "auto")
        assert {(each.confidence, each.n_samples) for each in path} == {(0.9, 600)}
        (same,) = [each for each in path if each.epsilon == pytest.approx(0.1)]
        assert same.normalized_utility == pytest.approx(mechanism.normalized_utility, abs=0.02)

    def test_enough_rows_keep_the_budget_without_being_asked(self):
        # All of X is released, and the limit of what that leaks is far below the budget.
        text = flat(PrivacyReport.from_estimator(quiet_fit(funnel(2.0), people(20_000))))
        assert "within the budget of 2" in text

    @pytest.mark.parametrize("epsilon", [2.0, np.inf])
    def test_a_budget_that_is_kept_and_protects_nothing_fails(self, epsilon):
        report = PrivacyReport.from_estimator(quiet_fit(funnel(epsilon), people(20_000)))
        assert report.sections[0].status == "FAIL"
        assert 'class="lead fail"' in report.to_html()
        assert "Sign under" not in str(report)
        assert "approved by" not in str(report)

    def test_a_single_group_is_no_reason_to_sign(self):
        report = PrivacyReport.from_estimator(quiet_fit(funnel(), people().assign(sex="f")))
        assert report.sections[0].status == "NO VERDICT"
        assert "approved by" not in str(report)

    @pytest.mark.parametrize(
        ("epsilon", "status", "colour"), [(0.01, "PASS", "pass"), (0.1, "CAUTION", "caution")]
    )
    def test_the_colour_is_that_of_the_verdict(self, epsilon, status, colour):
        fitted = quiet_fit(funnel(epsilon, confidence=0.95), people(20_000))
        report = PrivacyReport.from_estimator(fitted, with_curve=False)
        assert report.sections[0].status == status == fitted.summary_.status
        assert f'class="lead {colour}"' in report.to_html()
        assert "approved by" in str(report)

    def test_x_itself_is_no_randomised_release(self):
        transformer = funnel(np.inf).fit(people())
        report = PrivacyReport.from_estimator(transformer)
        assert "band is released unchanged, without noise" in str(report)
        assert report._repr_html_()

    def test_numbers_as_s_are_attacked_by_their_bins(self):
        frame = people(800)
        bins = {"noise": 4}  # said, and so without a warning
        transformer = funnel(0.005, sensitive="noise", columns=["band"], n_bins=bins).fit(frame)
        text = str(PrivacyReport.from_estimator(transformer, frame))
        assert "gradient boosting" in text
        assert "noise: 4 groups" in text

    def test_a_small_group_does_not_stop_it(self):
        frame = people(500)
        frame.loc[[0, 1, 2], "sex"] = "x"
        transformer = funnel().fit(frame)
        text = re.sub(r"\s+", " ", str(PrivacyReport.from_estimator(transformer, frame)))
        assert "No attack was made. The smallest group of S has 3 rows" in text
        again = str(PrivacyReport.from_estimator(transformer, frame, cv=2))
        assert "gradient boosting" in again

    def test_a_report_is_about_the_fit_it_was_made_of(self):
        transformer = funnel().fit(people())
        report = PrivacyReport.from_estimator(transformer)
        transformer.set_params(epsilon=np.inf).fit(people(seed=5))
        fresh = PrivacyReport.from_estimator(funnel().fit(people()))
        assert report._repr_html_() == fresh._repr_html_()

    def test_bad_arguments(self, transformer):
        with pytest.raises(TypeError, match="'transformer' .* a fitted PrivacyFunnelTransformer"):
            PrivacyReport.from_estimator(KL())
        shipped = PrivacyFunnelTransformer.from_json(transformer.to_json())
        with pytest.raises(TypeError, match="'purpose' parameter of PrivacyReport must be a str"):
            PrivacyReport.from_estimator(transformer, purpose=3)
        with pytest.raises(ValueError, match="'n_rows_out' .* must be an int in the range"):
            PrivacyReport.from_estimator(transformer, n_rows_out=-1)
        with pytest.raises(ValueError, match="Make the report where it was fitted"):
            PrivacyReport.from_estimator(shipped)

    def test_repr(self, report):
        assert repr(report) == "<PrivacyReport: Privacy report: band released, sex protected>"


# What a privacy officer asks, and what of the report answers it.
QUESTIONS = {
    "Was the promise kept, for these rows and beyond them?": [
        r"up to [\d.]+ may leak about sex \(95% confidence\), above the budget of 0\.01\.",
        "for these rows only",
    ],
    "What do I have to do now?": [
        "To do before you sign: - Do not sign: send it back and ask for a release without zip.",
    ],
    "Which files are these, and how many rows went in and came out?": [
        r"input people <2>\.csv: 3,000 rows SHA-256 of the input [\da-f]{64} ",
        r"output released\.csv: 2,999 rows, in the order of the input unless shuffled SHA-256 of the output [\da-f]{64} ",
        "'sha256sum FILE' computes it again",
    ],
    "What became of each column?": [
        "protected sex: 2 groups, left out randomised band: 5 symbols, 5 released values beside "
        "none copied zip, not covered by the guarantee dropped none",
        r"these copied columns leak more about sex than the budget allows: zip \([\d.]+\)\.",
    ],
    "What can somebody learn about one person, at worst?": [
        "can move the probability of 'f' from 47.8% to between 40.7% and 55.0%, at most",
        "The released value that reveals most in the rows is 'a'",
    ],
    "Has anybody tried to break it?": [
        "Models were trained to guess sex on parts of 1,500 rows",
        r"The best possible attacker is right in [\d.]+% of the rows",
        r"released [\d.]+% 51\.\d% [+-][\d.]+ points gradient boosting",
    ],
    "Does anybody stand out, in a small group or by a rare value?": [
        r"The smallest: group of sex [\d,]+ rows \('f'\) symbol \d+ rows pair of group and "
        r"symbol \d+ rows",
        "No value of a column is pooled, and none is rare: each has at least 5 rows.",
    ],
    "How wrong are the released values?": [
        r"Taken at face value, 73\.8% of the rows",
        "57% of 'a' are released as 'd'",
        r"band: a 43\.\d% \d+ d band: ",
    ],
    "What may the recipient do with it, and what not?": [
        "May conclude: - How the values of band are distributed over many rows",
        r"May not conclude: - Which sex a single person has: no released value moves the probability of a "
        r"group by more than [\d.]+ points\.",
        "That the release is anonymous. It protects sex, and nothing else",
    ],
    "Who gets it, what for, and who is responsible?": [
        "Purpose: A <b>study</b> of bands. Recipient: Example & Sons.",
        "This report is for those who sign, not for the recipient of the data",
    ],
}


class TestSigning:
    @pytest.mark.parametrize("question", QUESTIONS)
    def test_a_privacy_officer_is_answered(self, said, question):
        for answer in QUESTIONS[question]:
            is_pattern = "\\" in answer
            assert re.search(answer if is_pattern else re.escape(answer), said)

    def test_files_are_named_without_folders_and_hashed(self, report, files, said):
        page = report.to_html()
        for file in files:
            assert hashlib.sha256(file.read_bytes()).hexdigest() in page
        assert "secret_folder" not in page + said
        assert "people &lt;2&gt;.csv" in page
        assert "A &lt;b&gt;study&lt;/b&gt; of bands" in page
        assert "The board knows." in page
        assert "all of the input except one value" in said

    def test_without_files_nothing_is_hashed(self):
        handover = Handover(n_rows_out=5, purpose=" \n", recipient="x")
        table = handover.files("7 rows").cells[""]
        assert table.to_dict() == {
            "input": "not named: 7 rows",
            "output": "not named: 5 rows, in the order of the input unless shuffled",
        }
        assert "fingerprint" not in " ".join(handover.notes("sex"))
        assert handover.in_short() == ["Recipient: x."]
        assert handover.to_do()[0] == "Fill in the purpose under 'Signatures'."
        assert handover.signatures(may_sign=False).tables == []
        first, _ = handover.signatures(may_sign=True).tables
        assert first.cells[""].to_dict() == {
            "output": "not named",
            "purpose": BLANK,
            "recipient": "x",
            "one row per person?": BLANK,
            "released before?": BLANK,
            "who agreed to the budget": BLANK,
            "who keeps the input and the key": BLANK,
        }
        hidden = Handover(FileRecord("a.csv"), FileRecord("b.csv", "0" * 64))
        assert hidden.files("7 rows").cells[""]["SHA-256 of the input"] == "left out"
        assert "but one value" not in " ".join(hidden.notes("sex"))

    def test_no_class_of_python_is_named(self, report, said):
        page = report.to_html()
        pictures = re.findall(r"data:image/svg\+xml;base64,([\w+/=]+)", page)
        # Beside the shapes of its letters, matplotlib writes each text as a comment.
        texts = [re.findall("<!--(.*?)-->", b64decode(x).decode()) for x in pictures]
        assert any("leakage (kl)" in text for each in texts for text in each)
        shown = " ".join([said, re.sub('base64,[^"]+', "", page), *map(" ".join, texts)])
        rooms = skprivacy, skprivacy.measures, skprivacy.utilities, skprivacy.solvers
        names = [(room, name) for room in rooms for name in room.__all__]
        classes = {name for room, name in names if inspect.isclass(getattr(room, name))}
        classes -= {"Points", "Solution", "Target"}  # words of English too
        assert len(classes) > 20
        assert not [name for name in classes if re.search(rf"\b{name}\b", shown)]

    def test_settings_that_are_objects_have_names(self):
        options = {"measure": AlphaLift(alpha=3), "alphabet": TreeCells(max_cells=7)}
        transformer = funnel(utility=Distortion(), **options)
        settings = recipe(0.02, settings_of(transformer)).tables[0].cells[""]
        assert settings["measure"] == "alpha_lift(alpha=3)"
        assert settings["alphabet"] == "tree(max_cells=7)"
        assert settings["utility"] == "distortion('auto')"

    def test_the_words_are_used(self, report):
        others = [section for section in report.sections if section.title != "Words"]
        text = as_text("", others).lower()
        assert [word for word in WORDS if not re.search(rf"\b{word}s?\b", text)] == []

    def test_rare_values_are_counted_and_not_named(self):
        frame = people(400)
        frame.loc[:2, "band"] = ["hermit", "hermit", "recluse"]
        fitted = quiet_fit(funnel(), frame)
        text = as_text("", [small_numbers(fitted_of(fitted), "sex", 0.0)])
        assert "hermit" not in text
        assert "can appear in the release: 2 here" in text
        assert re.search(r"band +2 +2 +0 +7$", text, re.MULTILINE)
        assert re.search(r"symbol +1 row; 2 of 7 have fewer than 5$", text, re.MULTILINE)
        pooled = quiet_fit(funnel(min_frequency=5), frame)
        text = as_text("", [small_numbers(fitted_of(pooled), "sex", pooled.fidelity_.pooled)])
        assert re.search(r"band +0 +2 +2 +7$", text, re.MULTILINE)
        assert "0.8% of the rows have values that are pooled." in text
        assert re.search("symbol +3 rows", text)

    def test_values_that_vanish_are_named_unless_they_are_rare(self):
        frame = pd.DataFrame({"band": ["a", "b", "c", "d"] * 100})
        frame["size"] = np.arange(400) // 4 % 2
        frame["sex"] = np.where(np.random.default_rng(0).random(400) < 0.5, "f", "m")
        frame.loc[:46, "band"] = ["hermit"] * 4 + ["big"] * 23 + ["small"] * 20
        options = {"columns": ["band", "size"], "solver": "watchdog", "output": "label"}
        fitted = fitted_of(quiet_fit(funnel(1e-6, **options), frame))
        section = before_and_after(fitted, fitted.fidelity, None)
        points, (_, table) = section.points[-1], section.tables
        band, *_, together = points.sentences
        assert re.match(r"band, \d of 7 \([\d.]+% of the rows\): '\w' \(88 rows\), .*", band)
        assert band.endswith("'big' (23 rows), 'small' (20 rows), and 1 more.")
        assert together.startswith(
            "combinations of all columns, 12 of 13 (89.0% of the rows): 'd, 1'"
        )
        assert "hermit" not in str(points) + table.cells.to_string()
        assert table.cells.index.is_unique
        weights = np.where(np.arange(400) < 4, 100.0, 1.0)
        weighted = quiet_fit(funnel(1e-6, **options), frame, sample_weight=weights)
        fitted = fitted_of(weighted)
        points = before_and_after(fitted, fitted.fidelity, None).points[-1]
        assert points.sentences[-1].endswith("not named, because rows have weights.")
        fitted = fitted_of(quiet_fit(funnel(np.inf), people(300)))
        section = before_and_after(fitted, fitted.fidelity, None)
        assert section.points == []
        assert len(section.tables) == 1

    def test_where_guesses_show_nothing_that_is_said(self):
        common = design_mechanism([[0.05, 0.05], [0.3, 0.6]], 0.01)
        assert common.attacker_advantage == pytest.approx(0)
        assert "Its probability moves all the same" in best_attacker(
            common.summary().secrets[None]
        )
        even = design_mechanism([[0.2, 0.3], [0.3, 0.2]], 1e-7)
        said = best_attacker(even.summary().secrets[None])
        assert "reaches 0.02 points more" in said
        assert "no sign" not in said
        assert "all the same" not in said

    def test_one_figure_is_called_kept(self, report, transformer):
        kept = {f"{transformer.mechanism_.normalized_utility:{form}}" for form in (".1%", ".2%")}
        said = re.findall(r"(?:keeps|kept)\D{0,30}?([\d.]+%)", flat(report))
        assert set(said) <= kept
        assert len(said) >= 2


@pytest.fixture(scope="module")
def fitted():
    frame = people(900)[["sex", "band", "zip"]]
    frame["size"] = np.random.default_rng(1).integers(0, 40, len(frame))
    return quiet_fit(funnel(0.05, columns=["band", "size"], n_bins=4), frame), frame


class TestBeforeAndAfter:
    def test_bars_are_shares_of_rows(self, fitted):
        transformer, frame = fitted
        released = pd.concat([transformer.transform(frame) for _ in range(30)])
        band, size = values_of_columns(fitted_of(transformer))
        for texts, shares in (band.bars(8), size.bars(8)):
            assert_allclose(shares.sum(axis=1), 1)
            assert len(texts) == shares.shape[1]
        texts, shares = band.bars(2)
        assert texts[-1] == "all others"
        for table, found in ((frame, shares[0]), (released, shares[1])):
            expected = table["band"].value_counts(normalize=True)[texts[:-1]]
            assert_allclose(found[:-1], expected, atol=0.02)

    def test_numbers_without_bins_are_joined_to_ranges(self):
        frame = people(900)[["sex", "band"]]
        frame["size"] = np.random.default_rng(1).integers(0, 40, len(frame))
        transformer = quiet_fit(
            funnel(0.05, columns=["size"], n_bins=None, alphabet="values"), frame
        )
        (size,) = values_of_columns(fitted_of(transformer))
        texts, shares = size.bars(4)
        assert len(texts) == 4
        assert_allclose(shares[0], 0.25, atol=0.04)
        low, high = (int(end) for end in texts[0].split(" to "))
        assert_allclose(shares[0, 0], frame["size"].between(low, high).mean())

    def test_pairs_go_together_as_much_as_they_do(self):
        rng = np.random.default_rng(0)
        a, b = rng.integers(0, 5, 4000), rng.integers(0, 4, 4000)
        same, apart = trend([a, a], [a, b]), trend([a, a], [b, b])
        assert same[0] == pytest.approx(1)
        assert same[1] < 0.03
        assert apart[:2] == pytest.approx((0, 0), abs=0.03)
        assert apart[2] == pytest.approx(1)
        counts = pd.crosstab(a, b // 2).to_numpy()
        shifted = pd.crosstab(a, np.minimum(b, 1)).to_numpy()
        expected = 1 - np.abs(counts - shifted).sum() / 2 / len(a)
        assert trend([a, a], [b // 2, np.minimum(b, 1)])[2] == pytest.approx(expected)

    def test_unique_and_verbatim_rows_are_counted(self):
        rng = np.random.default_rng(0)
        before = pd.DataFrame(rng.integers(0, 9, (60, 2)), columns=list("ab")).astype(object)
        after = before.sample(frac=1, random_state=0).reset_index(drop=True)
        after.loc[:9, "a"] = None
        rows = [list(map(tuple, table.to_numpy())) for table in (before, after)]
        unique = [f"{np.mean([part.count(row) == 1 for row in part]):.1%}" for part in rows]
        there = f"{np.mean([row in rows[0] for row in rows[1]]):.1%}"
        alone = [row for row in rows[0] if rows[0].count(row) == 1]
        found = f"{np.mean([row in rows[1] for row in alone]):.1%}"
        assert list(singled_out(before, after).values()) == [
            unique,
            ["100.0%", there],
            ["100.0%", found],
        ]

    def test_rows_as_they_are_give_everybody_away(self, fitted):
        transformer, frame = fitted
        frame = frame.assign(size=np.arange(len(frame)) * 7 % 100)  # band and size: mostly unique
        report = PrivacyReport.from_estimator(quiet_fit(transformer, frame), frame)
        (section,) = [s for s in report.sections if s.title.startswith("Re-identification")]
        cells = section.tables[0].cells
        before, after = (
            float(text.split()[0]) for text in cells.filter(like="linkage", axis=0).to_numpy()[0]
        )
        assert before > after
        assert cells.loc["rows verbatim in the table", "before"] == "100.0%"

    def test_without_values_there_is_nothing_to_compare(self):
        frame = people(600)
        fitted = quiet_fit(funnel(output="symbol"), frame)
        titles = [s.title for s in PrivacyReport.from_estimator(fitted, frame).sections]
        assert "Before and after" not in titles
        assert not any(title.startswith("Re-identification") for title in titles)


def test_another_scale_decides_and_is_shown_with_the_default(transformer, tmp_path):
    path = tmp_path / "scale.json"
    level = {"points": 1, "times": 1.1}
    path.write_text(json.dumps({"name": "Us", "strong": level, "moderate": level, "weak": level}))
    fitted = quiet_fit(funnel(confidence=0.95), people(20_000))
    usual = PrivacyReport.from_estimator(fitted, with_curve=False)
    own = PrivacyReport.from_estimator(fitted, with_curve=False, scale=path)
    assert (usual.sections[0].status, own.sections[0].status) == ("PASS", "FAIL")
    said = flat(own)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in said.replace(" ", "")
    assert "On the default scale, the verdict is moderate (PASS)" in said
    assert "default scale" not in flat(usual)
    assert "approved by" not in said


class TestBrowser:
    def open(self, browser, page_file, width, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
        )
        page = context.new_page()
        page.problems, page.requests = [], []
        page.on("console", lambda message: page.problems.append(message.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(page_file.as_uri())
        return page

    @pytest.mark.parametrize("width", [1280, 390])
    def test_needs_no_network_and_fits_the_window(self, browser, page_file, width):
        page = self.open(browser, page_file, width)
        assert page.problems == []
        others = [u for u in page.requests if not u.startswith("data:")]
        assert others == [page_file.as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.title() == "Privacy report: band released, sex protected"

    def test_on_a_phone_what_scrolls_says_so(self, browser, page_file):
        script = """[...document.querySelectorAll('.scroll, .fits')].map(box => [
            box.scrollWidth > box.clientWidth + 1,
            box.previousElementSibling?.matches('.hint') === true
                && getComputedStyle(box.previousElementSibling).display !== 'none'])"""
        found = self.open(browser, page_file, 390).evaluate(script)
        assert [scrolls for scrolls, _ in found] == [hinted for _, hinted in found]
        assert sum(scrolls for scrolls, _ in found) >= 4
        assert not any(any(each) for each in self.open(browser, page_file, 1280).evaluate(script))

    def test_long_names_do_not_widen_the_page(self, browser, tmp_path):
        frame = people(800).rename(columns={"band": "number_of_dependents_in_the_household_" * 3})
        name = frame.columns[1]
        path = tmp_path / "long.html"
        with mpl.pyplot.style.context("dark_background"):
            PrivacyReport.from_estimator(funnel(columns=[name]).fit(frame)).save(path)
        page = self.open(browser, path, 360)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360

    def test_pictures_are_drawn_and_described(self, browser, page_file):
        page = self.open(browser, page_file, 1280)
        images = page.query_selector_all("img")
        assert len(images) == 4  # columns, the curve, the channel, and what leaks
        for image in images:
            assert image.evaluate("image => image.complete && image.naturalWidth > 200")
            assert len(image.get_attribute("alt")) > 8

    def test_tables_have_headers_and_captions(self, browser, page_file):
        page = self.open(browser, page_file, 1280)
        tables = page.query_selector_all("table")
        assert len(tables) >= 6
        for table in tables:
            assert table.query_selector("caption").inner_text()
            is_facts = (
                "facts" in table.get_attribute("class").split()
            )  # a name and a text need no header
            assert is_facts or table.query_selector_all("thead th[scope=col]")
            rows = table.query_selector_all("tbody tr")
            assert len(table.query_selector_all("tbody th[scope=row]")) == len(rows)
        levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => h.tagName)")
        assert levels[0] == "H1"
        assert set(levels[1:]) == {"H2", "H3"}
        assert levels[1] == "H2"
        assert page.get_attribute("html", "lang") == "en"

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_can_be_read_in_the_light_and_in_the_dark(self, browser, page_file, scheme):
        page = self.open(browser, page_file, 1280, scheme)
        ground = self.luminance(page, "article", "backgroundColor")
        assert (ground < 0.1) == (scheme == "dark")
        for selector in ("article", "figcaption", "caption", "td", "th"):
            ink = self.luminance(page, selector, "color")
            light, dark = max(ink, ground), min(ink, ground)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, selector  # WCAG AA
        source = page.evaluate("document.querySelector('img').currentSrc")
        other = page.get_attribute("source", "srcset")
        assert (source == other) == (scheme == "dark")

    def luminance(self, page, selector, style):
        script = f"getComputedStyle(document.querySelector('{selector}')).{style}"
        channels = np.array(re.findall(r"[\d.]+", page.evaluate(script))[:3], float) / 255
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        return linear @ [0.2126, 0.7152, 0.0722]

    def test_prints(self, browser, page_file):
        page = self.open(browser, page_file, 1280)
        content = page.pdf(format="A4")
        assert content.startswith(b"%PDF")
        pages = len(re.findall(rb"/Type\s*/Page\b", content))
        assert 2 <= pages <= 6

    def test_a_notebook_shows_the_same(self, browser, report, tmp_path):
        path = tmp_path / "cell.html"
        path.write_text(f"<html><body>{report._repr_html_()}</body></html>", encoding="utf-8")
        page = self.open(browser, path, 900)
        assert page.inner_text("h1") == report.title
        assert page.problems == []


def test_the_same_rows_make_the_same_report(report, transformer, files):
    assert report_of(transformer, files)._repr_html_() == report._repr_html_()
