"""Surfaces: the ways to ask a store whether something is still there, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from quietus.core.exchange import Reply, Request
from quietus.core.operations import Item
from quietus.profiles.acks import Condition, reply_view
from quietus.profiles.answers import Answered, read_answer
from quietus.profiles.columns import compile_groups
from quietus.profiles.faults import Ambiguous, CompileFault, Unread, Unreadable
from quietus.profiles.jsonpaths import MISSING
from quietus.profiles.models import ControlsModel, SurfaceModel
from quietus.profiles.selector import Place, Selector
from quietus.profiles.templates import Template, set_steps
from quietus.profiles.words import PageModel

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

    def __init__(self, model: SurfaceModel | ControlsModel, place: Place) -> None:
        named = isinstance(model, SurfaceModel)
        self.name = model.name if isinstance(model, SurfaceModel) else "controls"
        self.kind = model.kind if isinstance(model, SurfaceModel) else "index"
        self.each = model.each if isinstance(model, SurfaceModel) else None
        self.enumerates = model.enumerates if isinstance(model, SurfaceModel) else True
        self.note = model.note if isinstance(model, SurfaceModel) else ""
        self.template = Template(model.http, (*place, "http")) if model.http is not None else None
        self.page = _Page(model.page, (*place, "page")) if model.page else None
        self.clean = [Condition(when, (*place, "clean", at)) for at, when in enumerate(model.clean)]
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
        reading = _read_leniently(reply)
        view = reply_view(reply, reading.document if reading.text is None else MISSING)
        if any(condition.holds(view) for condition in self.clean):
            return SurfaceAnswer((), True, None, reading)
        if not 200 <= reply.status < 300:
            raise Unreadable(f"the surface {self.name} was answered with status {reply.status}")
        answer = read_answer(reply, self.groups)
        following = self.page.following(view, len(answer.items), page) if self.page is not None else None
        return SurfaceAnswer(answer.items, False, following, answer)


def _read_leniently(reply: Reply) -> Answered:
    """The answer without its rows; one that is no JSON has no document."""
    try:
        return read_answer(reply, ())
    except Unreadable:
        return Answered(text="")


class _Page:
    """How the next page is asked for."""

    def __init__(self, model: PageModel, place: Place) -> None:
        try:
            set_steps(model.set)
        except ValueError as error:
            raise CompileFault((*place, "set"), str(error)) from None
        self.set = model.set
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
