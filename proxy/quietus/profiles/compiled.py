"""Compiling a profile's document, and what a document must hold beyond the shape of its parts.

Everything wrong is collected, each with its place, so that a profile's author sees it all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from quietus.core.soundness import Rating, audited, must_wait, rated
from quietus.profiles.call_words import CallModel
from quietus.profiles.faults import CompileFault
from quietus.profiles.models import ROUND_SECONDS, ProfileModel, SurfaceModel
from quietus.profiles.routes import Route
from quietus.profiles.rpc import BOTH, WIRES, Wiring, check_selectors
from quietus.profiles.rpc_templates import AnyTemplate, make_template
from quietus.profiles.selector import Place, Selector
from quietus.profiles.surface import Surface
from quietus.profiles.templates import names_in, set_steps
from quietus.profiles.wire import same_shape

VALUES: Final = frozenset(
    {"key", "keys", "subject", "tenant", "purpose", "purposes", "path", "text", "vector", "epoch", "basis",
     "salience", "ttl"}
)  # fmt: skip
"""Placeholders that are known everywhere; captures of the routes come on top."""

WIDE: Final = Wiring(BOTH)
T = TypeVar("T")


class CompileFaults(Exception):
    """Everything that is wrong with a document."""

    def __init__(self, faults: list[CompileFault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults


@dataclass(slots=True)
class Compiled:
    """The parts of a profile, ready to run."""

    routes: tuple[Route, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    controls: Surface | None = None
    remedies: dict[str, AnyTemplate] = field(default_factory=dict)
    forgets: dict[str, AnyTemplate] = field(default_factory=dict)
    strengthen: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    canary: AnyTemplate | None = None
    canary_key: Selector | None = None
    epoch: AnyTemplate | None = None
    epoch_value: Selector | None = None
    longest: int = 0
    lints: tuple[str, ...] = ()
    whole: bool = True
    """No route was left out for a fault of its own."""


def compile_profile(model: ProfileModel, wiring: Wiring = WIDE) -> Compiled:
    """The compiled parts, for a store that is reached as `wiring` says. Raises CompileFaults."""
    faults: list[CompileFault] = []

    def attempt(make: Callable[[], T]) -> T | None:
        try:
            return make()
        except CompileFault as fault:
            faults.append(fault)
            return None

    out = Compiled()
    routes = [attempt(lambda one=one, at=at, wire=wire: Route(one, ("routes", at), wire, wiring))  # type: ignore[misc]
              for at, one in enumerate(model.routes)
              for wire in WIRES if getattr(one, wire) is not None and wire in wiring.wires]  # fmt: skip
    out.routes = tuple(route for route in routes if route is not None)
    out.whole = len(out.routes) == len(routes)
    surfaces = [attempt(lambda one=one, at=at: Surface(one, ("surfaces", at), wiring))  # type: ignore[misc]
                for at, one in enumerate(model.surfaces) if _asked_here(one, model, wiring)]  # fmt: skip
    out.surfaces = tuple(surface for surface in surfaces if surface is not None)
    if model.controls is not None:
        controls = model.controls
        out.controls = attempt(lambda: Surface(controls, ("controls",), wiring))
    _calls(model, out, wiring, attempt)
    out.longest = max((len(route.template.segments) for route in out.routes), default=0)
    for check in (_check_store, _check_routes, _check_surfaces, _check_names, _check_references):
        check(model, out, faults)
    if faults:
        raise CompileFaults(faults)
    out.lints = tuple(_lints(model))
    return out


def _asked_here(one: SurfaceModel, model: ProfileModel, wiring: Wiring) -> bool:
    """Whether a surface is asked by a wire that the store has: of two of a name the one that can be."""
    here = [wire for wire in wiring.wires if getattr(one, wire) is not None]
    others = [other for other in model.surfaces if other is not one and other.name == one.name]
    return bool(here) or not others


def _calls(
    model: ProfileModel, out: Compiled, wiring: Wiring, attempt: Callable[[Callable[[], Any]], Any]
) -> None:
    def template(call: CallModel | None, place: Place) -> AnyTemplate | None:
        if call is None:
            return None
        made: AnyTemplate | None = attempt(lambda: make_template(call, place, wiring))
        return made

    for name, call in model.remedies.items():
        made = template(call, ("remedies", name))
        if made is not None:
            out.remedies[name] = made
    for name in ("subject", "keys", "path"):
        made = template(getattr(model.forgets, name), ("forgets", name))
        if made is not None:
            out.forgets[name] = made
    if model.canary is not None:
        canary = model.canary
        out.canary = template(canary.write, ("canary", "write"))
        key = canary.key
        if key is not None:
            out.canary_key = attempt(lambda: Selector(key, ("canary", "key")))
        elif out.canary is not None and "key" not in out.canary.names:
            attempt(lambda: _keyless(("canary", "key")))
    if model.epoch is not None:
        epoch = model.epoch
        out.epoch = template(epoch, ("epoch",))
        out.epoch_value = attempt(lambda: Selector(epoch.value, ("epoch", "value")))
    for one in model.strengthen:
        out.strengthen[one.route] = dict(one.set)


def _keyless(place: Place) -> None:
    raise CompileFault(place, "nobody knows a canary's key", "say where the answer has it, or write {key}")


def _check_store(model: ProfileModel, out: Compiled, faults: list[CompileFault]) -> None:
    store = model.store
    rounds = store.clean_rounds * ROUND_SECONDS
    if store.bound <= store.settling_interval + rounds:
        faults.append(CompileFault(
            ("store", "effectuation_bound"),
            "effectuation_bound does not exceed the settling interval and its clean rounds",
            f"make it longer than {store.settling_interval + rounds:g}s",
        ))  # fmt: skip
    if store.write_path_reads_derived is False and "settling_interval" not in store.model_fields_set:
        faults.append(CompileFault(
            ("store", "write_path_reads_derived"),
            "an exemption of the write path needs a stated settling_interval",
            "state store.settling_interval",
        ))  # fmt: skip
    if not any(surface.kind == "unprobeable" for surface in model.surfaces):
        faults.append(CompileFault(
            ("surfaces",),
            "no surface is unprobeable: a receipt would say that everything was checked",
            "add at least {name: backups, kind: unprobeable, note: …}",
        ))  # fmt: skip
    if not any(surface.kind not in ("unprobeable", "history") for surface in model.surfaces):
        faults.append(CompileFault(("surfaces",), "no surface can be probed: nothing could ever settle"))


def _check_routes(model: ProfileModel, out: Compiled, faults: list[CompileFault]) -> None:
    for at, spec in enumerate(model.routes):
        place: Place = ("routes", at)
        if spec.operation == "ignore" and (
            spec.request.model_fields_set or spec.response.model_fields_set
        ):
            faults.append(CompileFault(
                (*place, "operation"),
                f"the route {spec.name} is ignored and yet says where memories are",
                "ignore is for what is free of memory content",
            ))  # fmt: skip
        if spec.operation == "forget":
            asked = spec.request
            if not (asked.subject or asked.key or asked.path or asked.filter):
                faults.append(CompileFault(
                    (*place, "request"), f"the forget {spec.name} names no subject, key, path or filter"
                ))  # fmt: skip
    if not out.whole:
        return
    for at, route in enumerate(out.routes):
        for earlier in out.routes[:at]:
            same = earlier.wire == route.wire and earlier.method == route.method
            if same and earlier.when is None and same_shape(earlier.template, route.template):
                faults.append(CompileFault(
                    route.place, f"the route {earlier.name} above takes all of its requests"
                ))  # fmt: skip


def _check_surfaces(model: ProfileModel, out: Compiled, faults: list[CompileFault]) -> None:
    seen: set[tuple[str, str]] = set()
    for at, spec in enumerate(model.surfaces):
        wires: list[str] = [wire for wire in WIRES if getattr(spec, wire) is not None] or ["none"]
        if any((spec.name, wire) in seen for wire in wires):
            faults.append(CompileFault(("surfaces", at, "name"), f"two surfaces are called {spec.name}"))
        seen.update((spec.name, wire) for wire in wires)
        for call in (spec.http, spec.grpc):
            if call is not None and spec.each is not None and spec.each not in names_in(call.model_dump()):
                faults.append(CompileFault(
                    ("surfaces", at, "each"),
                    f"the surface {spec.name} asks for each {spec.each}, "
                    f"but {{{spec.each}}} is nowhere in it",
                ))  # fmt: skip


def _check_names(model: ProfileModel, out: Compiled, faults: list[CompileFault]) -> None:
    captured = {name for route in model.routes for name in route.capture}
    answers = [route.response.item for route in model.routes if route.response.item is not None]
    answers += [surface.item for surface in model.surfaces if surface.item is not None]
    answers += [model.controls.item] if model.controls and model.controls.item else []
    captured |= {name for item in answers for name in item.capture}
    known = VALUES | captured
    templates = [surface.template for surface in (*out.surfaces, out.controls) if surface is not None]
    templates += [*out.remedies.values(), *out.forgets.values(), out.canary, out.epoch]
    for template in templates:
        if template is None:
            continue
        for name, place in template.names.items():
            if name not in known:
                faults.append(CompileFault(
                    place, f"nothing is called {{{name}}}", f"known are {', '.join(sorted(known))}"
                ))  # fmt: skip


def _check_references(model: ProfileModel, out: Compiled, faults: list[CompileFault]) -> None:
    operations = {route.name: route.operation for route in model.routes}
    rpcs = {route.name: route.rpc for route in out.routes if route.rpc is not None}
    for at, one in enumerate(model.strengthen):
        rpc = rpcs.get(one.route)
        if rpc is not None:
            try:
                check_selectors(list(one.set), rpc.takes, ("strengthen", at, "set"))
            except CompileFault as fault:
                faults.append(fault)
        if operations.get(one.route) not in ("recall", "read"):
            faults.append(CompileFault(
                ("strengthen", at, "route"), f"no recall or read route is called {one.route}"
            ))  # fmt: skip
        for target in one.set:
            try:
                set_steps(target)
            except ValueError as error:
                faults.append(CompileFault(("strengthen", at, "set", target), str(error)))
    each = model.forgets.each_record
    if each is not None and each not in model.remedies:
        faults.append(CompileFault(("forgets", "each_record"), f"no remedy is called {each}"))


def _lints(model: ProfileModel) -> list[str]:
    found = []
    manners = model.store.manners(frozenset(each.condition for each in model.store.attestations))
    if rated(manners) is Rating.UNSOUND:
        found.append(
            "UNSOUND: lazy invalidation and a write path that reads derived state; no TTL makes up for it"
        )
    if not audited(manners):
        found.append("the write path is not attested as audited for derived reads: no verdict is COMPLIANT")
    if must_wait(manners):
        found.append(
            "forgets should wait until settled (a rule with `effect: wait`, or `Prefer: wait=` of a client): "
            "the store promises more than an acknowledgement can say, and has no completion_signal"
        )
    return found
