"""What the report says about the files, and about those who hand them over and sign for them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from .._typing import FilePath
from .._validation import check_integer, message
from .sections import BLANK, Section, Table, facts

_FINGERPRINTS = (
    "SHA-256 is the fingerprint of a file: 'sha256sum FILE' computes it again (on Windows "
    "'certutil -hashfile FILE SHA256', on macOS 'shasum -a 256 FILE'), and any change to the file "
    "changes it."
)
_NOT_FOR_THE_RECIPIENT = (
    "This report is for those who sign, not for the recipient of the data: {reasons}. The "
    "recipient needs the section on what may and may not be concluded."
)
_FINGERPRINT_TELLS = (
    "whoever knows all of the input but one value, or can guess it, finds that value by the "
    "fingerprint of the input, which no budget prevents"
)


@dataclass(frozen=True)
class FileRecord:
    """A file as a report names it: without its folder; None for what is not known or not told."""

    name: str
    sha256: str | None = None

    @classmethod
    def of(cls, given: FilePath | FileRecord | None) -> FileRecord | None:
        """Return the record of a file, which is read from its start to its end."""
        if given is None or isinstance(given, FileRecord):
            return given
        with open(given, "rb") as file:
            return cls(Path(given).name, sha256_of(file))


@dataclass(frozen=True)
class Handover:
    """What is handed over, what for and to whom; None for what is not known."""

    input_file: FileRecord | None = None
    output_file: FileRecord | None = None
    n_rows_out: int | None = None
    purpose: str | None = None
    recipient: str | None = None

    def check(self, owner: str) -> None:
        """Check what was given; owner : for messages."""
        for name in ("purpose", "recipient"):
            if not isinstance(value := getattr(self, name), str | None):
                raise TypeError(message(owner, name, "a str or None", value))
        if self.n_rows_out is not None:
            check_integer(owner, "n_rows_out", self.n_rows_out, low=0)

    def files(self, learned_from: str) -> Table:
        """Return the table of files; learned_from : how many rows there were."""
        rows_out = "rows not counted here" if self.n_rows_out is None else _rows(self.n_rows_out)
        texts = {
            "input": f"{_name(self.input_file)}: {learned_from}",
            **_fingerprint("input", self.input_file),
            "output": f"{_name(self.output_file)}: {rows_out}",
            **_fingerprint("output", self.output_file),
        }
        return facts("Files", texts)

    def notes(self, protected: str) -> list[str]:
        """Say what fingerprints are, and for whom this report is."""
        reasons = f"it names the groups of {protected}, with their shares"
        if self.input_file is not None and self.input_file.sha256 is not None:
            reasons = f"{reasons}, and {_FINGERPRINT_TELLS}"
        hashed = [file for file in (self.input_file, self.output_file) if file and file.sha256]
        return [
            *([_FINGERPRINTS] if hashed else []),
            _NOT_FOR_THE_RECIPIENT.format(reasons=reasons),
        ]

    @property
    def _purposes(self) -> dict[str, str]:
        """What it is for, and for whom, in one line each; empty if that is not known."""
        given = {"purpose": self.purpose, "recipient": self.recipient}
        return {name: " ".join((text or "").split()) for name, text in given.items()}

    def in_short(self) -> list[str]:
        """Say what it is for, and for whom, as far as that is known."""
        known = [f"{name.capitalize()}: {text}" for name, text in self._purposes.items() if text]
        return [f"{'. '.join(known)}."] if known else []

    def to_do(self) -> list[str]:
        """Say what is to be filled in, and signed."""
        empty = [f"the {name}" for name, text in self._purposes.items() if not text]
        fill_in = [f"Fill in {' and '.join(empty)} under 'Signatures'."] if empty else []
        return [*fill_in, "Sign under 'Signatures'."]

    def signatures(self, may_sign: bool) -> Section:
        """Return who signs what, if anybody may; what is not known is filled in by hand."""
        if not may_sign:
            return Section("Signatures", ["Nobody should sign for this release: see 'In short'."])
        texts = {
            "output": _name(self.output_file),
            **_fingerprint("output", self.output_file),
            **{name: text or BLANK for name, text in self._purposes.items()},
        }
        lines = pd.DataFrame(
            BLANK,
            index=pd.Index(["prepared by", "checked by", "approved by"], name=""),
            columns=["name", "date", "signature"],
        )
        return Section(
            "Signatures",
            [
                "For the files above, this purpose and this recipient. What is empty is filled in "
                "by hand."
            ],
            [facts("What, what for, and to whom", texts), Table("Names and signatures", lines)],
        )


def sha256_of(file: Any) -> str:
    """Return the fingerprint of all bytes of a file that can be rewound."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _name(file: FileRecord | None) -> str:
    return "no file is named" if file is None else file.name


def _fingerprint(name: str, file: FileRecord | None) -> dict[str, str]:
    if file is None:
        return {}
    return {f"SHA-256 of the {name}": file.sha256 or "left out"}


def _rows(n_rows: int) -> str:
    return f"{n_rows:,} rows"
