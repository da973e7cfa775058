"""Processes that stand by for mutants: one that answers, and children that live for one piece of work."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Answers = Callable[[str, Any], Any]
"""From a module and what is asked about it to an answer."""


class Server:
    """A process that answers what becomes of mutants, one after the other."""

    def __init__(self, begin: Callable[[Callable[[Answers], None]], None]) -> None:
        ask, told = os.pipe(), os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(ask[1])
            os.close(told[0])
            with suppress(BaseException):
                begin(lambda answers: _serve(ask[0], told[1], answers))
            os._exit(0)
        os.close(ask[0])
        os.close(told[1])
        self._ask, self._told = os.fdopen(ask[1], "wb"), os.fdopen(told[0], "rb")

    def ask(self, module: str, asked: Any) -> Any:
        """Its answer. Raises RuntimeError when the process has ended."""
        _tell(self._ask, (module, asked))
        with suppress(EOFError):
            return _told(self._told)
        raise RuntimeError("the tests cannot be collected, or fail without any mutant")

    def close(self) -> None:
        """Ends it."""
        self._ask.close()
        self._told.close()
        os.waitpid(self._pid, 0)


def _serve(ask: int, told: int, answers: Answers) -> None:
    with os.fdopen(ask, "rb") as asked, os.fdopen(told, "wb") as out, suppress(EOFError):
        while True:
            _tell(out, answers(*_told(asked)))


def _tell(stream: Any, what: Any) -> None:
    data = pickle.dumps(what)
    stream.write(struct.pack("!I", len(data)) + data)
    stream.flush()


def _told(stream: Any) -> Any:
    size = stream.read(4)
    if len(size) < 4:
        raise EOFError
    return pickle.loads(stream.read(*struct.unpack("!I", size)))


def quiet() -> None:
    """Says nothing more, whatever is run."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def in_child(work: Callable[[], Any]) -> Any:
    """What `work` returns in a child; None when it fails or ends the process."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        data = b""
        with suppress(BaseException):
            data = pickle.dumps(work())
        with os.fdopen(theirs, "wb") as out:
            out.write(data)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as told:
        data = told.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None
