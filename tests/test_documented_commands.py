"""Every command that the pages and the help show is run, in their order."""

import contextlib
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from texts import Step, is_said, steps_of

from skprivacy import PrivacyFunnelTransformer
from skprivacy.cli import main
from skprivacy.cli.arguments import parser
from skprivacy.describing.verdict import ALLOWS
from skprivacy.measures import MEASURES

ROOT = Path(__file__).parents[1]
FIRST, OWN = "docs/first_release.rst", "docs/tutorial.rst"
COMMANDS = ["demo", "sanitize", "apply", "key", "curve", "choose", "audit", "certify"]
NOISE = 4.0  # points, in what attackers find: the rows that they attack are drawn anew


def blocks_of_readme(language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def commands_of_help(command):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([command, "--help"])
    _, _, examples = said.getvalue().partition("example")
    lines = r"^  ((?:cat .*)?skprivacy .*|awk .*|echo .*)$"
    return re.findall(lines, examples.replace("\\\n", ""), re.MULTILINE)


PAGES = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/**/*.rst"))]
STEPS = {page: list(steps_of((ROOT / page).read_text())) for page in [FIRST, OWN, *PAGES]} | {
    f"skprivacy {command} --help": [Step(shown, "") for shown in commands_of_help(command)]
    for command in COMMANDS
}
SHOWN = {place: [step.command for step in steps] for place, steps in STEPS.items()}


OUTPUTS = (r"sanitize \S+ (\S+)", r"apply \S+ \S+ (\S+)", r"\bkey (\S+)", r"--report (\S+)",
           r"--save-mechanism (\S+)", r"(?:-o|--out) (\S+)", r"> (\S+)$")  # fmt: skip


def written_by(command):
    """The names of the files that a command writes."""
    return [name for output in OUTPUTS for name in re.findall(output, command)]


def without_outputs(command):
    """What a command does, wherever it writes that."""
    for name in written_by(command):
        command = re.sub(rf"(-o|--out)? {re.escape(name)}(?!\S)", "", command)
    return " ".join(command.split())


def runs_elsewhere(place, command):
    """Whether another place, which comes first, shows the same, and no file links it to others."""
    where = [p for p in SHOWN if without_outputs(command) in map(without_outputs, SHOWN[p])]
    others = [other for other in SHOWN[place] if other != command]
    reads = any(name in command.split() for other in others for name in written_by(other))
    is_read = any(name in other.split() for name in written_by(command) for other in others)
    return where[0] != place and not reads and not is_read


def test_there_are_commands_to_run():
    assert len(SHOWN["docs/commands.rst"]) >= 10
    for page in (FIRST, OWN, "docs/commands.rst"):
        assert sum(bool(step.output) for step in STEPS[page]) >= len(STEPS[page]) / 2
    assert all(SHOWN[f"skprivacy {command} --help"] for command in COMMANDS[1:])


def options_of(command):
    actions = parser_of(command)._option_string_actions.items()
    return {text: action for text, action in actions if text.startswith("--") and text != "--help"}


def parser_of(command):
    return next(action.choices for action in parser()._actions if action.choices)[command]


def test_every_option_has_an_example():
    """In the help of its command; those that `sanitize` has too may be shown there alone."""
    shared = options_of("sanitize")
    for command in COMMANDS:
        places = {f"skprivacy {command} --help", "skprivacy sanitize --help"}
        for option, action in options_of(command).items():
            where = places if option in shared else {f"skprivacy {command} --help"}
            shown = " ".join(text for place in where for text in SHOWN[place]).split()
            assert set(action.option_strings) & set(shown), f"{command} {option}"


@pytest.mark.parametrize(
    ("shown", "found"),
    [("kept: 12.4%, then 1.5e-05\n...", True), ("kept: 14%, then 1.5e-05\n...", False),
     ("kept: -12.3%, then 1.5e-05\n...", False), ("...\nend", True), ("end", False)],
)  # fmt: skip
def test_what_was_not_printed_is_found(shown, found):
    assert is_said(shown, "kept:   12.3%, then\n  1.5e-05\nend\n") is found


def test_the_cheat_sheet_names_what_there_is():
    page = (ROOT / "docs/cheat_sheet.rst").read_text()
    known = {name for command in COMMANDS for name in options_of(command)}
    assert set(re.findall(r"--[a-z][a-z-]+", page)) <= known
    assert set(re.findall(r"``skprivacy (\w+)", page)) == {*COMMANDS, "ui"}
    python = re.findall(r"(?m)^   \* - (``.*``)$", page.partition("Settings\n")[2])
    parameters = {*PrivacyFunnelTransformer().get_params(), "record_ids", "secret_key"}
    assert set(re.findall(r"``(\w+)``", " ".join(python))) <= parameters | set(MEASURES)
    limits = [(f"{100 * p:.0f} points", f"{t:.0f} times") for p, t in ALLOWS.values()]
    assert re.findall(r"- (\d+ points)\n +- (\d times) as likely", page) == limits


def test_no_two_examples_write_the_same_file():
    """In the folder of the demo, those of every help can all be run."""
    places = [place for place in SHOWN if not place.startswith("docs")]
    shown = [c for place in places for c in SHOWN[place] if "--force" not in c]
    written = [name for c in shown for name in written_by(c) if not c.startswith("awk")]
    written = ["patients.csv", "released.csv", "report.html", *(n for n in written if n != "-")]
    assert len(written) > 25
    assert sorted(set(written)) == sorted(written)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Return the folder that the demo fills, and what it says."""
    folder, said, warned = tmp_path_factory.mktemp("demo"), io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(warned),
    ):
        assert main(["demo"]) == 0
    assert warned.getvalue() == ""
    return folder / "skprivacy-demo", said.getvalue()


def test_the_demo_prints_the_table_of_the_first_page(demo):
    folder, said = demo
    header, *rows = said.split("\n\n")[1].splitlines()
    assert header.split() == ["release", "leaks", "here", "at", "most", "kept", "attacker"]
    figures = np.array([row[16:].replace("%", "").split() for row in rows], dtype=float)
    budgets = [float(row.split()[2]) for row in rows[1:]]
    assert (figures[:, 0] < figures[:, 1]).all()
    assert (figures[1:, 1] <= np.array(budgets) + 1e-4).all()
    assert (figures[1:, 2] > 45).all()  # something is kept
    assert "442 rows are few" in said
    page = (folder / "report.html").read_text()
    assert re.search("limit: [\\d.]+", page)
    assert "95% confidence" in page
    for name in ("patients.csv", "released.csv"):
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() in page
    assert (np.diff(figures, axis=0) < 0).all()  # smaller budgets, less utility, worse attackers
    page = " ".join((ROOT / FIRST).read_text().split())
    assert f"a blind guess is right in {figures[-1, 3]:.1f}%" in page
    assert "Wrote to skprivacy-demo:" in said
    files = sorted(path.name for path in folder.iterdir())
    assert files == ["patients.csv", "released.csv", "report.html"]
    *lines, _ = said.splitlines()  # the last is a command, which no shell may have to put together
    assert max(map(len, lines)) <= 99


def test_the_readme_quotes_what_the_demo_prints(demo):
    rows = dict(re.findall(r"^(as it is|epsilon = 0.02) +(\S.*)$", demo[1], re.MULTILINE))
    *_, raw = rows["as it is"].split()
    *_, best = rows["epsilon = 0.02"].split()
    (kept,) = re.findall(r"Taken at face value, (\S+%) of the rows", demo[1])
    words = " ".join((ROOT / "README.md").read_text().split())
    pattern = r"(\S+%) of the rows keep .* in (\S+%) of cases.* the true values give (\S+%)\."
    assert re.search(pattern, words).groups() == (kept, best, raw)


def test_the_command_at_the_end_of_the_demo_says_what_the_demo_says(
    demo, monkeypatch, capsys, tmp_path
):
    folder, said = demo
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, folder.name)
    before, command = said.split("Try it yourself:\n")
    main(shlex.split(command)[1:])
    figures = capsys.readouterr().out.partition("Taken at face value")[2]
    assert figures
    assert figures in before


def run_between(source, command, target):
    """Run a command between two files; tests/cli/test_cli.py has pipes of real processes."""
    with open(source) as given, open(target, "w") as taken, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", given)
        patch.setattr("sys.stdout", taken)
        assert main(shlex.split(command)) == 0, command
    assert Path(target).stat().st_size > 0


def run_by_shell(command):
    """Return what a command of a shell prints; scripts are those of this clone."""
    command = re.sub(r"\bskprivacy\b", f"{sys.executable} -m skprivacy", command)
    command = command.replace("python3 docs", f"{sys.executable} {ROOT / 'docs'}")
    return subprocess.check_output(command, shell=True, timeout=60, text=True)


def run(command, demo, capsys, fails=False):
    """Run a command as it is shown, and return what it prints; fails : whether it should."""
    where = re.fullmatch("skprivacy demo ?(.*)", command)
    if where:  # it was run
        shutil.copytree(demo[0], where[1] or demo[0].name)
        return demo[1].replace(demo[0].name, where[1] or demo[0].name)
    if command.startswith("cd "):
        os.chdir(command.removeprefix("cd "))
    elif piped := re.fullmatch(r"cat (\S+) \| skprivacy (.*) > (\S+)", command):
        run_between(*piped.groups())
    elif not command.startswith("skprivacy ") or "|" in command:
        return run_by_shell(command)
    else:
        assert (main(shlex.split(command)[1:]) != 0) is fails, command
    printed = capsys.readouterr()
    return printed.err if fails else printed.out


@pytest.mark.parametrize("place", [place for place, commands in SHOWN.items() if commands])
def test_commands_work_and_print_what_is_shown(
    place, demo, tmp_path, monkeypatch, capsys, request
):
    monkeypatch.chdir(tmp_path)
    if place != OWN:  # nobody looks at what attackers find
        request.getfixturevalue("quick_attackers")
    if place.startswith("skprivacy"):
        monkeypatch.chdir(shutil.copytree(demo[0], demo[0].name))
    wrong = []
    for command, output in STEPS[place]:
        if not output and runs_elsewhere(place, command):  # on the same rows
            continue
        fails = output.startswith("skprivacy: error: ")
        printed = run(command, demo, capsys, fails)
        written = re.findall(r"\b(\w+\.(?:csv|png|html|json|parquet))\b", command)
        assert fails or all(Path(name).exists() for name in written), command
        noise = NOISE if " audit " in command else 0.0
        if output and not is_said(output, printed, noise=noise):
            wrong.append(f"$ {command}\n{printed}")
    assert not wrong, "not what is shown:\n" + "\n".join(wrong)


def test_the_python_of_the_readme(capsys):
    """The lines run as they stand."""
    (block,) = blocks_of_readme("python")
    names = {}
    exec(block, names)
    assert names["funnel"].mechanism_.population_limit.max_leakage <= 0.02 * (1 + 1e-9)
    assert names["released"].columns.tolist() == ["blood_pressure"]
    assert "95% confidence" in capsys.readouterr().out
