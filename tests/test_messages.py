"""Messages as data: what they mention, and what the command line makes of it."""

import ast
import copy
import pickle
import re
from pathlib import Path
from string import Formatter

import numpy as np
import pandas as pd
import pytest

import skprivacy
from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning, SolverError, design_mechanism
from skprivacy._messages import (
    BinsOf,
    InPython,
    Mention,
    Message,
    Named,
    Owner,
    Parameter,
    Setting,
    message_of,
)
from skprivacy._validation import check_choice, check_integer, check_real
from skprivacy.cli import main
from skprivacy.cli.arguments import parser
from skprivacy.cli.messages import OPTIONS, in_options, one_line

PACKAGE = Path(skprivacy.__file__).parent
EVERY = Message(
    Parameter("n_bins", "f"), " and ", Named("record_ids"), " or ", Setting("epsilon", 0.5),
    Setting("names", [...]), Setting("sensitive", ...), BinsOf("a", at_edges=True), Owner("f"),
    InPython(" here", Named("columns")), "; the rest.",
)  # fmt: skip


class TestMessage:
    def test_its_text_is_for_python(self):
        assert EVERY == (
            "The 'n_bins' parameter of f and record_ids or epsilon=0.5names=[...]sensitive=..."
            "n_bins={'a': [...]}f here; the rest."
        )
        assert isinstance(EVERY, str)
        assert str(ValueError(EVERY)) == EVERY

    @pytest.mark.parametrize(
        ("mention", "python", "option"),
        [
            (Parameter("epsilon", "f"), "The 'epsilon' parameter of f", "--epsilon"),
            (Parameter("random_state", "f"), "The 'random_state' parameter of f", None),
            (Named("secret_key"), "secret_key", "--key-file"),
            (Named("sample_weight"), "sample_weight", None),
            (Setting("handle_unknown", "error"), "handle_unknown='error'", "--handle-unknown error"),
            (Setting("epsilon", np.float64(0.25)), "epsilon=0.25", "--epsilon 0.25"),
            (Setting("epsilon", np.float32(2)), "epsilon=2", "--epsilon 2"),
            (Setting("max_categories", 3), "max_categories=3", "--max-categories 3"),
            (Setting("force", True), "force=True", "--force"),
            (Setting("header", True), "header=True", "--header"),
            (Setting("header", False), "header=False", "--no-header"),
            (Setting("names", [...]), "names=[...]", "--names"),
            (Setting("sensitive", ...), "sensitive=...", "--sensitive"),
            (Setting("max_time", 3), "max_time=3", None),
            (BinsOf("a b", at_edges=True), "n_bins={'a b': [...]}", "--edges a b=A,B,..."),
            (BinsOf("a", at_edges=False), "n_bins={'a': None}", "--categorical a"),
            (Owner("PrivacyFunnelTransformer"), "PrivacyFunnelTransformer", "skprivacy"),
            (InPython("only here"), "only here", ""),
            (InPython("here", "there"), "here", "there"),
            (InPython("here", Named("edges")), "here", "--edges"),
        ],
    )  # fmt: skip
    def test_what_is_mentioned_has_two_names(self, mention, python, option):
        message = Message("So: ", mention, "!")
        assert message == f"So: {python}!"
        assert in_options(message) == f"So: {python if option is None else option}!"

    def test_messages_in_messages(self):
        inner = ValueError(Message(Named("record_ids"), " is wrong"))
        outer = Message("file.csv: ", message_of(inner), ".")
        assert outer.parts == ("file.csv: ", Named("record_ids"), " is wrong", ".")
        assert message_of(ValueError("plain")) == "plain"
        assert message_of(ValueError()) == ""

    def test_templates(self):
        template = "{column!r} has {n:,} values in {S}: {edges} or {force=True}{more}"
        more = Message(" and ", Named("columns"))
        message = Message.of(template, column="a{b}", n=1234, edges=Named("record_ids"), more=more)
        assert message == "'a{b}' has 1,234 values in S: record_ids or force=True and columns"
        assert in_options(message) == (
            "'a{b}' has 1,234 values in the sensitive columns: --record-ids or --force and --columns"
        )

    def test_what_it_is_about(self):
        assert EVERY.parameter == "n_bins"
        assert Message("of ", Owner("f"), BinsOf("a", at_edges=True)).parameter == "n_bins"
        assert Message("nothing").parameter is None

    @pytest.mark.parametrize("kind", [ValueError, SolverError, PrivacyLeakWarning])
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_it_travels(self, kind, protocol):
        for error in (
            pickle.loads(pickle.dumps(kind(EVERY), protocol)),
            copy.copy(kind(EVERY)),
            copy.deepcopy(kind(EVERY)),
        ):
            assert type(error) is kind
            assert message_of(error).parts == EVERY.parts
            assert str(error) == EVERY

    @pytest.mark.parametrize(
        ("check", "value", "error"),
        [
            (lambda value: check_real("f", "epsilon", value, low=0), -1, ValueError),
            (lambda value: check_real("f", "epsilon", value, low=0), "1", TypeError),
            (lambda value: check_integer("f", "epsilon", value, low=0), 0.5, TypeError),
            (lambda value: check_choice("f", "epsilon", value, {"a"}), "epsilon=3", ValueError),
        ],
    )
    def test_checks_say_which_parameter(self, check, value, error):
        with pytest.raises(error, match="The 'epsilon' parameter of f must be") as caught:
            check(value)
        assert message_of(caught.value).parameter == "epsilon"
        said = one_line(caught.value)
        assert said.startswith("--epsilon must be")
        assert said.endswith(f"Got {value!r} instead.")

    def test_errors_of_the_library_carry_it(self):
        with pytest.raises(ValueError, match="needs measure='chi2'") as caught:
            design_mechanism([[0.2, 0.3], [0.3, 0.2]], 0.1, solver="chi2_design")
        assert message_of(caught.value).parameter == "measure"
        assert "design_mechanism got measure=KL(), scope='per_output'" in str(caught.value)
        assert "skprivacy got --measure kl, --scope per_output" in one_line(caught.value)
        frame = pd.DataFrame({"sex": list("mf") * 50, "band": list("uvvu") * 25})
        with pytest.warns(PrivacyLeakWarning, match="next to nothing") as warned:
            PrivacyFunnelTransformer(5.0, sensitive="sex").fit(frame)
        assert message_of(warned[-1].message).parameter == "epsilon"


def options_of_commands():
    commands = next(action.choices for action in parser()._actions if action.choices)
    return {
        option
        for command in commands.values()
        for action in command._actions
        for option in action.option_strings
    }


def test_the_table_names_options_that_there_are_and_all_of_them():
    there = options_of_commands()
    assert set(OPTIONS.values()) <= there
    for name in PrivacyFunnelTransformer(0.1).get_params():
        assert name in OPTIONS or f"--{name.replace('_', '-')}" not in there, name


ODD = ["epsilon", "n_bins=3", "the 'epsilon' parameter of x", "force=True", "record_ids",
       "The 'columns' parameter of PrivacyFunnelTransformer", "n_bins={'a': [...]}"]  # fmt: skip


class TestNamesOfTheUser:
    """Names that look like words of the library are shown as they are written."""

    @pytest.fixture(autouse=True)
    def table(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        rng = np.random.default_rng(0)
        s = rng.choice(list("ab"), 400)
        like_s = np.where(rng.random(400) < 0.8, s, rng.choice(list("ab"), 400))
        table = pd.DataFrame({"s": s, "x": rng.choice(list("uvw"), 400)})
        table = table.assign(**{name: like_s for name in ODD if name != "record_ids"})
        table.to_csv("in.csv", index=False)

    def said(self, capsys, columns, *more, code=1, sensitive="s"):
        arguments = ["--sensitive", sensitive, "--columns", columns, "--epsilon", "0.01", *more]
        assert main(["sanitize", "in.csv", "out.csv", "--force", *arguments]) == code
        return capsys.readouterr().err

    def test_a_column_that_is_called_like_an_option(self, capsys):
        said = self.said(capsys, "record_ids", "--header")
        assert said.startswith(
            "skprivacy: error: --columns names the column 'record_ids', which in.csv does not have."
        )
        assert repr(ODD[:4])[1:-1] in said
        assert "--record-ids" not in said

    @pytest.mark.parametrize("name", ODD)
    def test_in_every_place(self, name, capsys):
        quoted = f'"{name}"'
        missing = f'"{name}!"'
        text = f"--columns names the column {f'{name}!'!r}, which in.csv does not have"
        assert text in self.said(capsys, missing)
        assert text.replace("--columns", "--sensitive") in self.said(
            capsys, "x", sensitive=missing
        )
        if name == "record_ids":
            return
        assert f"The column {name!r} is both sensitive and in --columns" in self.said(
            capsys, quoted, sensitive=quoted
        )
        said = self.said(capsys, "x", "--remainder", quoted)
        assert f"than --epsilon 0.01 allows: {name} (0." in said
        said = self.said(capsys, "x", "--remainder", quoted, "--allow-leaking", code=0)
        assert f"\n  {name}" in said

    def test_values_too(self, capsys):
        table = pd.read_csv("in.csv")
        self.said(capsys, "x", "--save-mechanism", "m.json", code=0)
        table.assign(x="use force=True, the 'epsilon' parameter of f").to_csv("new.csv")
        assert main(["apply", "m.json", "new.csv", "new_out.csv"]) == 1
        assert (
            "during transform: \"use force=True, the 'epsilon' parameter of f\". Use "
            "--handle-unknown resample to draw them from the distribution of the release."
            in capsys.readouterr().err
        )

    def test_paths_too(self, capsys):
        Path("force=True n_bins=3.csv").touch()
        arguments = ["--sensitive", "s", "--columns", "x", "--epsilon", "1"]
        assert main(["sanitize", "in.csv", "force=True n_bins=3.csv", *arguments]) == 1
        assert (
            "'force=True n_bins=3.csv' already exists: use --force to replace it."
            in capsys.readouterr().err
        )


# What the command line would have to find in a text, were it written into it: parameters by
# their full title, with a value, or by a name that is not an English word.
TOLD = re.compile(
    r"'(?:{names})' parameter|\}} parameter of|\b(?:{names})=|\b(?:{long})\b".format(
        names="|".join(OPTIONS), long="|".join(name for name in OPTIONS if "_" in name)
    )
)
MENTIONS = {kind.__name__ for kind in Mention.__subclasses__()}
# These texts never reach the command line as messages: reprs, pages, and lazy frames.
ELSEWHERE = ("cli/", "engines/__init__.py", "engines/lazy_frames.py", "engines/lazy_polars.py", "engines/dask_frames.py",
             "engines/spark_frames.py", "plotting/", "report/", "_messages.py", "mechanism/",
             "repetition.py")  # fmt: skip


def texts_of(tree):
    """Yield the sentences of a module that are plain text, f-strings with braces."""
    skipped = set()
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call)
        is_mention = is_call and isinstance(node.func, ast.Name) and node.func.id in MENTIONS
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_mention or is_docstring or id(node) in skipped:
            skipped |= {id(child) for child in ast.iter_child_nodes(node)}
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(child) for child in ast.iter_child_nodes(node)}
            parts = (x.value if isinstance(x, ast.Constant) else "{}" for x in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, re.sub(r"\{[^}]*\}", "{}", node.value)  # of a template


def test_no_message_has_a_parameter_in_its_plain_text():
    found = [
        (path.relative_to(PACKAGE).as_posix(), line, text)
        for path in PACKAGE.rglob("*.py")
        if not path.relative_to(PACKAGE).as_posix().startswith(ELSEWHERE)
        for line, text in texts_of(ast.parse(path.read_text()))
        if " " in text and not text.startswith("<") and TOLD.search(text)
    ]
    assert found == []


def test_the_search_finds_what_it_is_to_find():
    for text in ('f"The {name!r} parameter of {owner} is"', "\"the 'columns' parameter is\"",
                 '"say force=True again"', '"both record_ids and"'):  # fmt: skip
        ((_, found),) = texts_of(ast.parse(f"raise ValueError({text})"))
        assert TOLD.search(found), text
    assert not list(texts_of(ast.parse('Message(InPython("say force=True again"))')))
    (found,) = texts_of(ast.parse('Message("Use ", Setting("solver", "auto"))'))
    assert found == (1, "Use ")


PARAMETERS = {*OPTIONS, *PrivacyFunnelTransformer(0.1).get_params(), "S", "X"}


def assigned(name, line, function):
    """Return what a name was last given before a line of a function."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and node.lineno < line:
            target, value = node.targets[-1], node.value
            of_several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=False) if of_several else [(target, value)]
            found += [given for to, given in pairs if isinstance(to, ast.Name) and to.id == name]
    assert found, f"line {line}: {name} is not given in the same function"
    return max(found, key=lambda given: given.lineno)


def template_of(node, function):
    """Return the text of a template: literals, names of literals, and sums of both."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.Name(name):
            return template_of(assigned(name, node.lineno, function), function)
        case ast.BinOp(left, ast.Add(), right):
            return template_of(left, function) + template_of(right, function)
    raise AssertionError(f"line {node.lineno}: a template must be literal text")


def keys_of(keyword, function):
    """Return the fields that a keyword argument gives, several if it is a ``**dict``."""
    if keyword.arg is not None:
        return [keyword.arg]
    given = keyword.value
    if isinstance(given, ast.Name):
        given = assigned(given.id, given.lineno, function)
    assert isinstance(given, ast.Dict), f"line {given.lineno}: fields must be a literal dict"
    return [ast.literal_eval(key) for key in given.keys]


def wrong_templates(tree):
    """Yield the line, and what is wrong, for calls of `Message.of` in a module."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "Message.of":
            continue
        around = [f for f in functions if f.lineno <= node.lineno <= f.end_lineno]
        function = max(around, key=lambda f: f.lineno, default=tree)
        fields = list(Formatter().parse(template_of(node.args[0], function)))
        names = {field for _, field, _, _ in fields if field is not None}
        given = {key for keyword in node.keywords for key in keys_of(keyword, function)}
        for name in names - given:
            if name.partition("=")[0] not in PARAMETERS:
                yield node.lineno, f"{{{name}}} is neither given nor a parameter"
        yield from ((node.lineno, f"{name} is not in the template") for name in given - names)
        if not {conversion for *_, conversion in fields} <= {None, "", "r"}:
            yield node.lineno, "the only conversion is !r"


def test_fields_of_templates_are_given_or_are_parameters():
    found = [
        (path.relative_to(PACKAGE).as_posix(), *wrong)
        for path in PACKAGE.rglob("*.py")
        for wrong in wrong_templates(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("Message.of(\"{epsilon}, {S}, {a!r}, {scope='average'}\", a=1)", None),
        ('b, c = "{a:,} ", 1\nd = {"a": 2}\nMessage.of(b + "{X}", **d)', None),
        ('Message.of("{epsilom}")', "{epsilom} is neither given nor a parameter"),
        ('Message.of("{scop=1}")', "{scop=1} is neither given nor a parameter"),
        ('a = "{b}"\nMessage.of(a, b=1, c=2)', "c is not in the template"),
        ('Message.of("{a!s}", a=1)', "the only conversion is !r"),
    ],
)
def test_the_check_of_templates_finds_what_it_is_to_find(code, wrong):
    assert [text for _, text in wrong_templates(ast.parse(code))] == ([wrong] if wrong else [])


def test_templates_hold_no_values():
    with pytest.raises(AssertionError, match="a template must be literal text"):
        list(wrong_templates(ast.parse('Message.of(f"The column {name!r} is odd.")')))


class TestCommands:
    """Sentences of all rooms of the library, as the command line says them."""

    @pytest.fixture(autouse=True)
    def files(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        rng = np.random.default_rng(0)
        s = rng.choice(list("ab"), 300)
        x = np.where(rng.random(300) < 0.7, s, rng.choice(list("abc"), 300))
        table = pd.DataFrame({"s": s, "x": x, "few": rng.choice(list("abcdefgh"), 300)})
        table["id"], table["half"] = range(300), np.arange(300) + 0.5
        table.to_csv("in.csv", index=False)
        table.to_parquet("in.parquet")
        table.assign(id=[None, *range(299)]).to_csv("gap.csv", index=False)
        Path("rows.csv").write_text("a,1,2\nb,2,3\n" * 9)
        Path("twice.csv").write_text("s,x,x\na,1,2\nb,2,3\n")
        rare = {"s": ["a", "b"] * 100 + ["c"] * 2, "x": rng.choice(list("abcdef"), 202)}
        pd.DataFrame(rare).to_csv("rare.csv", index=False)
        main(["key", "k"])

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            ("in.csv --columns x,x", "--columns names the column 'x' more than once."),
            ("in.csv --columns x --remainder x", "'x' is both in --columns and in --remainder"),
            ("in.csv --columns x --record-ids i --key-file k", "--record-ids names the column 'i'"),
            ("in.csv --columns x --record-ids x --key-file k", "--record-ids names the column 'x'"),
            ("in.csv --columns x --record-ids few --key-file k", "--record-ids names 'few', which"),
            ("gap.csv --columns x --record-ids id --key-file k", "--record-ids names 'id', which"),
            ("in.parquet --columns x --record-ids half --key-file k",
             "--record-ids must be all integers or all texts. Got dtype float64: convert them first."),
            ("in.csv --columns x --solver chi2_design", "needs --measure chi2. skprivacy got"),
            ("in.csv --columns x --solver chi2_design --measure chi2 --confidence none",
             "as many groups of the sensitive columns as released values, none of them a mixture of "
             "others. Got 2 and 3. Use --solver optimal."),
            ("in.csv --columns id --bins 60 --solver lift_polytope --measure max_lift --confidence none "
             "--sensitive few", "A table of 8 groups of the sensitive columns and 60 released values has"),
            ("in.csv --columns x --solver greedy_funnel", "needs --scope average. skprivacy got"),
            ("in.csv --columns few,x --solver best_partition",
             "more than 10. Pool rare symbols of the released columns, or use --solver "
             "subset_merging.\n"),
            ("in.csv --columns x --measure lip --scope average", "supports it with --scope per_output"),
            ("in.csv --columns x --names a,b", "in.csv has 5 columns, but --names has 2."),
            ("rows.csv --columns x --names a,a,b", "--names has 'a' twice."),
            ("rows.csv --columns x --names a,b,c --header", "a header: leave out --header."),
            ("rows.csv --columns x", "use --no-header if it is a row, with --names to name the "
             "columns if you like, or --header if it is a header."),
            ("twice.csv --columns x", "if there is no header, use --no-header."),
            ("in.csv --columns x --epsilon 9", "--epsilon protects next to nothing"),
            ("rare.csv --columns x --epsilon 0.001 --confidence none",
             "--confidence 0.95 keeps the budget there too.\n"),
            ("in.csv --columns x --smoothing 1", "--smoothing needs --confidence none: a conf"),
            ("in.csv --columns x --epsilon 0", "Use a larger --epsilon, or --confidence none.\n"),
        ],
    )  # fmt: skip
    def test_sanitize(self, arguments, text, capsys):
        source, *more = arguments.split()
        design = ["--sensitive", "s", "--epsilon", "0.01"]
        main(["sanitize", source, "out.csv", *design, *more])
        said = capsys.readouterr().err
        assert text in said
        assert not TOLD.search(said)
        assert "PrivacyFunnelTransformer" not in said

    def test_apply_and_audit(self, capsys):
        design = ["--sensitive", "s", "--columns", "x", "--epsilon", "0.01"]
        main(["sanitize", "in.csv", "out.csv", *design, "--save-mechanism", "m.json"])
        assert main(["apply", "m.json", "rows.csv", "new.csv", "--no-header"]) == 1
        said = capsys.readouterr().err
        assert "m.json needs the column 'x', which rows.csv does not have. It has the col" in said
        rows = pd.read_csv("in.csv")[["s", "x"]]
        funnel = PrivacyFunnelTransformer(0.01, sensitive=0).fit(rows.to_numpy())
        Path("array.json").write_text(funnel.to_json())
        rows.to_csv("rows.csv", index=False)
        assert main(["apply", "array.json", "rows.csv", "new.csv"]) == 0
        said = capsys.readouterr().err
        assert "names, but skprivacy was fitted without feature names" in said
        assert main(["audit", "rare.csv", "--sensitive", "s", "--released", "x"]) == 1
        said = capsys.readouterr().err
        assert "has 2 rows, fewer than the 5 folds: pool groups.\n" in said
