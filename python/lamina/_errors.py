# SPDX-License-Identifier: Apache-2.0
"""Errors of lamina as exceptions."""


class Error(RuntimeError):
    """What lamina says went wrong: what it found, and what to do."""

    __module__ = "lamina"
    kind: str
    what: str
    hint: str
    file: str
    line: int  # from 1; 0: not about a line
    column: int


class UsageError(Error, ValueError):
    """The request is wrong: an unknown name, SQL that cannot be."""

    __module__ = "lamina"


class InputError(Error, OSError):
    """A file is missing, or is not what it should be."""

    __module__ = "lamina"


class Cancelled(Error):
    """The work was stopped."""

    __module__ = "lamina"


class LimitError(Error):
    """A limit of time, rows or memory was reached."""

    __module__ = "lamina"


_KINDS = {"usage": UsageError, "input": InputError, "cancelled": Cancelled,
          "limit": LimitError}


def make(kind: str, text: str, what: str, hint: str, file: str, line: int,
         column: int) -> Error:
    error = _KINDS.get(kind, Error)(text)
    error.kind = kind
    error.what = what
    error.hint = hint
    error.file = file
    error.line = line
    error.column = column
    return error
