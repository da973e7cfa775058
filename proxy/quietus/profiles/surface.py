"""Surfaces: the ways to ask a store whether something is still there, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from quietus.core.exchange import Reply, Request, Wire
from quietus.core.operations import Item
from quietus.profiles.acks import Condition, reply_view
from quietus.profiles.answers import Answered, Captures, answered, read_answer
from quietus.profiles.call_words import PageModel
from quietus.profiles.columns import compile_groups
from quietus.profiles.descriptors import MessageType
from quietus.profiles.dimensions import capture_all
from quietus.profiles.faults import Ambiguous, CompileFault, Unread, Unreadable
from quietus.profiles.jsonpaths import MISSING
from quietus.profiles.message_answers import read_message
from quietus.profiles.models import ControlsModel, SurfaceModel
from quietus.profiles.rpc import Wiring, check_rows, check_selectors
from quietus.profiles.rpc_templates import RpcTemplate, make_template
from quietus.profiles.selector import Place, Selector
from quietus.profiles.templates import set_steps

_PLAIN: Final = Wiring(frozenset({"http"}))
_BLOCKING: Final = frozenset({"primary", "index", "cache", "derived", "graph"})


@dataclass(slots=True)
class SurfaceAnswer:
    """What a probe came back with."""

    items: tuple[Item, ...]
    clean: bool
    """The store said in so many words that there is nothing: a `clean` outcome matched."""
    next_page: object | None
    answered: Answered


class Surface:
    """One compiled surface."""

    def __init__(self, model: SurfaceModel | ControlsModel, place: Place, wiring: Wiring = _PLAIN) -> None:
        named = isinstance(model, SurfaceModel)
        self.name = model.name if isinstance(model, SurfaceModel) else "controls"
        self.kind = model.kind if isinstance(model, SurfaceModel) else "index"
        self.each = model.each if isinstance(model, SurfaceModel) else None
        self.enumerates = model.enumerates if isinstance(model, SurfaceModel) else True
        self.note = model.note if isinstance(model, SurfaceModel) else ""
        asks = model.http is not None or model.grpc is not None
        self.template = make_template(model, place, wiring) if asks else None
        self.gives = self.template.rpc.gives if isinstance(self.template, RpcTemplate) else None
        if self.gives is not None:
            _check_answers(model, self.gives, place)
        rpc = self.gives is not None
        self.page = _Page(model.page, (*place, "page"), "grpc" if rpc else "http") if model.page else None
        self.clean = [
            Condition(when, (*place, "clean", at), self.gives) for at, when in enumerate(model.clean)
        ]
        self.requires = Condition(model.requires, (*place, "requires"), self.gives)
        self.capture = {name: Selector(one, (*place, "capture", name)) for name, one in model.capture.items()}
        self.groups = compile_groups(model.items, model.item, model.columns, place)
        if self.template is not None and not self.groups:
            self.groups = [*compile_groups("$.body", model.item, None, place)]
        if named and self.enumerates and not (model.items or model.columns):
            raise CompileFault(place, "a surface that enumerates needs items or columns")

    @property
    def probeable(self) -> bool:
        """Whether anything can be asked."""
        return self.kind != "unprobeable"

    @property
    def blocking(self) -> bool:
        """Whether a leak here keeps an erasure from settling."""
        return self.kind in _BLOCKING

    def request(self, values: Mapping[str, Any], page: object | None = None) -> Request:
        """The probe for these values. Raises CannotQuote, MissingValue."""
        if self.template is None:
            raise Unreadable(f"the surface {self.name} cannot be probed")
        sets = self.page.sets(page) if self.page is not None else None
        return self.template.fill(values, sets)

    def read(self, reply: Reply, page: object | None = None) -> SurfaceAnswer:
        """What came back. Raises Unreadable for an answer that is neither rows nor `clean`."""
        reading = self._answer(reply, lenient=True)
        view = reply_view(reply, reading.document if reading.text is None else MISSING)
        if any(condition.holds(view) for condition in self.clean):
            return SurfaceAnswer((), True, None, reading)
        if not 200 <= reply.status < 300:
            raise Unreadable(f"the surface {self.name} was answered with status {reply.code or reply.status}")
        if not self.requires.holds(view):
            raise Unreadable(f"the surface {self.name} was answered with an error")
        try:
            captures = capture_all(self.capture, view) if self.capture else {}
        except Ambiguous:
            raise Unreadable("the answer says two things where one is expected") from None
        answer = self._rows(reply, reading, captures)
        following = self.page.following(view, len(answer.items), page) if self.page is not None else None
        return SurfaceAnswer(answer.items, False, following, answer)

    def _rows(self, reply: Reply, reading: Answered, captures: Captures) -> Answered:
        """The answer with its rows. JSON that has been decoded already is not decoded again."""
        if self.gives is None and reading.text is None:
            return answered(reading.document, reading.plain, self.groups, captures, required=True)
        return self._answer(reply, captures)

    def _answer(self, reply: Reply, captures: Captures = {}, *, lenient: bool = False) -> Answered:  # noqa: B006
        """The answer; `lenient`: without its rows, and one that cannot be read has no document."""
        try:
            groups = () if lenient else self.groups
            if self.gives is not None:
                return read_message(reply, groups, self.gives, captures)
            return read_answer(reply, groups, captures)
        except Unreadable:
            if not lenient:
                raise
            return Answered(text="")


def _check_answers(model: SurfaceModel | ControlsModel, kind: MessageType, place: Place) -> None:
    """Every selector of the answer against its message. Raises CompileFault."""
    said = model.model_dump(include={"clean", "requires", "capture", "items", "item"})
    check_selectors({"when": said["requires"]}, kind, (*place, "requires"))
    check_selectors({name: said[name] for name in ("capture", "items")}, kind, place)
    for at, when in enumerate(said["clean"]):
        check_selectors({"when": when}, kind, (*place, "clean", at))
    if model.page is not None and model.page.next is not None:
        check_selectors(model.page.model_dump()["next"], kind, (*place, "page", "next"))
    check_rows(said["items"], said["item"], kind, place)


class _Page:
    """How the next page is asked for."""

    def __init__(self, model: PageModel, place: Place, wire: Wire) -> None:
        try:
            self.set = model.set if isinstance(model.set, str) else model.set[wire]
            set_steps(self.set)
        except KeyError:
            raise CompileFault((*place, "set"), f"nothing is set for {wire}") from None
        except ValueError as error:
            raise CompileFault((*place, "set"), str(error)) from None
        self.start = model.from_
        self.step = model.step
        self.next = Selector(model.next, (*place, "next")) if model.next else None
        self.short = model.until == "short"
        self.until = Condition(model.until, (*place, "until")) if isinstance(model.until, dict) else None

    def sets(self, page: object | None) -> dict[str, Any]:
        """What is set for this page; nothing for a first page without `from`."""
        value = self.start if page is None else page
        return {} if value is None else {self.set: value}

    def following(self, view: Mapping[str, Any], rows: int, page: object | None) -> object | None:
        """The next page, or None at the end. Raises Unreadable where paging does not move."""
        if self.next is not None:
            try:
                found = self.next.nodes(view)
            except (Unread, Ambiguous):
                raise Unreadable("the next page is not where the profile says") from None
            value = found[0] if found else None
            if value is None or value == "" or value is False:
                return None
            if type(value) not in (str, int):
                raise Unreadable("the next page is neither text nor a number")
            if value == (self.start if page is None else page):
                raise Unreadable("the pages do not move on")
            return value  # type: ignore[no-any-return]
        assert self.step is not None
        if rows == 0 or (self.short and rows < self.step) or (self.until and self.until.holds(view)):
            return None
        at = self.start if page is None else page
        return int(at) + self.step  # type: ignore[call-overload, no-any-return]
