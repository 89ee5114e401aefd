"""A transformer as a command and as a Python script, which make the same release.

Nothing is imported here before it is used: the command line has its names of options from here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .transformer import PrivacyFunnelTransformer

__all__ = ["command", "script"]

# Parameters of the library by the names of options.
_SAME_NAMES = (
    "allow_leaking", "alphabet", "beside", "columns", "confidence", "edges", "epsilon",
    "force", "handle_unknown", "header", "made_up", "max_categories", "max_cells", "max_factor",
    "max_shift", "max_outputs", "measure", "min_frequency", "names", "ordered", "output",
    "person", "proportions", "record_ids", "release_target", "remainder", "scope", "sensitive",
    "smoothing", "solver", "solver_options", "target", "utility",
)  # fmt: skip
OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in _SAME_NAMES},
    "n_bins": "--bins",
    "n_settings": "--settings",
    "secret_key": "--key-file",
    "utility_at_least": "--keep-utility",
}

_LISTS = ("sensitive", "columns", "beside", "remainder")

_NUMBERS = (
    "epsilon", "confidence", "max_outputs", "min_frequency", "max_categories", "smoothing",
)  # fmt: skip

# Defaults of commands that are not those of the transformer.
_OF_COMMANDS = {"utility": "distortion", "confidence": 0.95, "handle_unknown": "error"}

# Numbers with more distinct values are cut into this many bins.
DEFAULT_BINS = 10

_PLAIN_NAME = re.compile(r"[\w.%+/-]([\w .%+/-]*[\w.%+/-])?")


def command(
    transformer: PrivacyFunnelTransformer,
    source: str,
    out: str,
    *,
    target: str | None = None,
    header: bool | None = None,
    **more: str,
) -> str:
    """Return the command that releases a file as a transformer does.

    Parameters
    ----------
    transformer : PrivacyFunnelTransformer
        Fitted or not.
    source, out : str
        The file to release, and the file to write.
    target, header : default=None
        As in `skprivacy.files.fit_file`.
    more : str
        Other options of ``skprivacy sanitize``: ``report="report.html"``, for example.

    Returns
    -------
    str
        For a POSIX shell.

    Raises
    ------
    ValueError
        If a parameter is no option of the command.

    Examples
    --------
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.recipes import command
    >>> funnel = PrivacyFunnelTransformer(0.05, sensitive="sex", columns=["bmi", "weight, kg"])
    >>> print(command(funnel, "patients.csv", "released.csv")[:78])
    skprivacy sanitize --epsilon=0.05 --sensitive=sex '--columns=bmi,"weight, kg"'
    """
    options = _options(transformer)
    words = [option if text is None else f"{option}={text}" for option, text in options]
    if target is not None:
        words = [word for word in words if not word.startswith("--utility=")]
        words.append(f"--target={target}")
    words += [] if header is None else ["--header" if header else "--no-header"]
    words += [f"--{name.replace('_', '-')}={text}" for name, text in more.items()]
    return shlex.join(["skprivacy", "sanitize", *words, "--", source, out])


def script(
    transformer: PrivacyFunnelTransformer,
    source: str,
    out: str,
    *,
    target: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    report: str | None = None,
    save_mechanism: str | None = None,
    purpose: str | None = None,
    recipient: str | None = None,
) -> str:
    """Return a Python script that releases a file as a transformer does.

    Parameters
    ----------
    transformer, source, out, target, header
        As in `command`.
    delimiter : str, default=None
        As in `skprivacy.files.fit_file`.
    report, save_mechanism : str, default=None
        Files for the report and the mechanism.
    purpose, recipient : str, default=None
        As in `PrivacyReport.from_estimator`.

    Examples
    --------
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.recipes import script
    >>> funnel = PrivacyFunnelTransformer(0.05, sensitive="sex", columns=["bmi"])
    >>> print(script(funnel, "patients.csv", "released.csv"))
    from skprivacy import PrivacyFunnelTransformer
    from skprivacy.files import fit_file, transform_file
    <BLANKLINE>
    funnel = PrivacyFunnelTransformer(
        epsilon=0.05,
        sensitive='sex',
        columns=['bmi'],
    )
    fit_file(funnel, 'patients.csv')
    n_rows = transform_file(funnel, 'patients.csv', 'released.csv')
    <BLANKLINE>
    """
    given = [f"    {name}={value!r},\n" for name, value in _changed(transformer).items()]
    fitting = [repr(source)]
    fitting += [] if target is None else [f"target={target!r}"]
    reading = [] if header is None else [f"header={header}"]
    reading += [] if delimiter is None else [f"delimiter={delimiter!r}"]
    imports = ["from skprivacy import PrivacyFunnelTransformer"]
    imports[0] += ", PrivacyReport" if report else ""
    imports.append("from skprivacy.files import fit_file, transform_file")
    lines = [
        *(["from pathlib import Path", ""] if save_mechanism else []),
        *imports,
        "",
        f"funnel = PrivacyFunnelTransformer(\n{''.join(given)})",
        f"fit_file(funnel, {', '.join(fitting + reading)})",
        f"n_rows = transform_file({', '.join(['funnel', repr(source), repr(out), *reading])})",
    ]
    if save_mechanism:
        lines.append(f"Path({save_mechanism!r}).write_text(funnel.to_json(indent=1))")
    if report:
        lines += _report_lines(source, out, report, purpose, recipient)
    return "\n".join(lines) + "\n"


def _report_lines(
    source: str, out: str, report: str, purpose: str | None, recipient: str | None
) -> list[str]:
    return [
        "PrivacyReport.from_estimator(",
        "    funnel,",
        *([f"    purpose={purpose!r},"] if purpose else []),
        *([f"    recipient={recipient!r},"] if recipient else []),
        f"    input_file={source!r},",
        f"    output_file={out!r},",
        "    n_rows_out=n_rows,",
        f").save({report!r})",
    ]


def _given(transformer: PrivacyFunnelTransformer) -> dict[str, Any]:
    """Return the parameters in the order of the class."""
    given = transformer.get_params(deep=False)
    return {name: given[name] for name in signature(type(transformer)).parameters}


def _changed(transformer: PrivacyFunnelTransformer) -> dict[str, Any]:
    """Return the budget, and the parameters that are not those of a new transformer."""
    usual = _given(type(transformer)())
    given = _given(transformer).items()
    return {name: x for name, x in given if name == "epsilon" or repr(x) != repr(usual[name])}


def _options(transformer: PrivacyFunnelTransformer) -> list[tuple[str, str | None]]:
    """Return options of `skprivacy sanitize` with their values; a flag has none."""
    given, usual = _given(transformer), _given(type(transformer)()) | _OF_COMMANDS
    if given["sensitive"] is None:
        raise _without_option("sensitive", None)
    found: list[tuple[str, str | None]] = []
    for name, value in given.items():
        if name == "n_bins":
            found += _bins(value)
        elif name == "ordered":
            found += _orders(value)
        elif name == "release_target":
            found += [("--release-target", None)] if value else []
        elif name in ("epsilon", "sensitive") or repr(value) != repr(usual[name]):
            found.append((OPTIONS.get(name, name), _text(name, value)))
    return found


def _text(name: str, value: Any) -> str:
    """Return the value of an option."""
    match value:
        case None if name == "confidence":
            return "none"
        case str() if name in _LISTS and value not in ("drop", "passthrough"):
            return _listed([value])
        case str():
            return value
        case int() | float() if name in _NUMBERS:
            return repr(value)
        case Mapping() if name == "epsilon":
            keys = ["+".join(key) if isinstance(key, tuple) else key for key in value]
            return ",".join(f"{key}={x!r}" for key, x in zip(keys, value.values(), strict=True))
        case Mapping() if name == "solver_options":
            return ",".join(f"{key}={x}" for key, x in value.items())
        case list() | tuple() if name in _LISTS and all(isinstance(x, str) for x in value):
            return _listed(value)
    raise _without_option(name, value)


def _bins(given: Any) -> list[tuple[str, str]]:
    """Return the options for bins. A command cuts sensitive columns into the usual number."""
    if given == DEFAULT_BINS:
        return []
    if not isinstance(given, Mapping):
        raise _without_option("n_bins", given)
    numbers = {bins for bins in given.values() if isinstance(bins, int)}
    if len(numbers) > 1:
        raise _without_option("n_bins", given)
    found = [("--bins", str(number)) for number in numbers - {DEFAULT_BINS}]
    if codes := [name for name, bins in given.items() if bins is None]:
        found.append(("--categorical", _listed(codes)))
    edges = {name: x for name, x in given.items() if x is not None and not isinstance(x, int)}
    return found + [("--edges", f"{n}={','.join(map(repr, x))}") for n, x in edges.items()]


def _orders(given: Any) -> list[tuple[str, str]]:
    """Return the options for the order of texts."""
    scales = dict(given or {})
    if not all(isinstance(text, str) for name, texts in scales.items() for text in (name, *texts)):
        raise _without_option("ordered", given)
    return [("--ordered", scale_text(name, texts)) for name, texts in scales.items()]


def scale_text(name: str, texts: Sequence[str]) -> str:
    """Return a column and its texts in ascending order, as the option takes them."""
    return f"{_listed([name])}={_listed(texts)}"


def _without_option(name: str, value: Any) -> ValueError:
    return ValueError(f"A command cannot say {name}={value!r}: use a script.")


def _listed(names: Sequence[str]) -> str:
    """Return names as one option takes them."""
    return ",".join(name if _PLAIN_NAME.fullmatch(name) else _quoted(name) for name in names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
