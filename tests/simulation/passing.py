"""What passes through a replica: a client's call on its one side, a request to the store on the other."""

from __future__ import annotations

import asyncio
from collections import Counter

from quietus.answers import Answer
from quietus.core.exchange import Request
from quietus.gateway import Gateway
from quietus.legacy.store import LegacyStore
from quietus.ports import OpenReply, Permit, UpstreamError
from tests.simulation.clients import Client, request_of
from tests.simulation.machines import Machine
from tests.simulation.network import Network
from tests.simulation.plan import Plan, Step
from tests.simulation.views import Seat, SharedJudge
from tests.simulation.virtual import Time


class ReplicaNetwork(Network):
    """The way to the store from one machine: what its replica may not say any more does not leave."""

    def __init__(self, number: int, time: Time, store: LegacyStore, plan: Plan, seat: Seat) -> None:
        super().__init__(time, store, plan, seat)
        self._number = number

    def _draw(self, label: str) -> float:
        return super()._draw(f"{self._number}:{label}")

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        if not permit.holds:
            raise UpstreamError("this replica may not speak for the gate", sent=False)
        return await super().open(request, permit, fresh=fresh)


class ReplicaClient(Client):
    """A call whose answer is handed over in the step in which it was let go: a machine that stands still
    stands still before that or after it.
    """

    def __init__(
        self, time: Time, judge: SharedJudge, gateway: Gateway, step: Step, counts: Counter[str],
        machine: Machine,
    ) -> None:  # fmt: skip
        super().__init__(time, judge, gateway, step, counts)
        self._epochs = judge.epochs
        self._machine = machine

    async def live(self) -> None:
        if "patience" not in self._step:
            await self._live()
            return
        work = asyncio.ensure_future(self._live())
        timer = asyncio.ensure_future(self._time.sleep(self._step["patience"]))
        await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        if work.done():
            work.result()
        else:
            work.cancel()
            self._counts["gone away"] += 1

    async def _live(self) -> None:
        request = request_of(self._step)
        if (asked := self._epochs.get(self._step.get("epoch_of", -1))) is not None:
            request = Request(
                request.method, request.target, (*request.headers, ("Quietus-Min-Epoch", str(asked))),
                request.body,
            )  # fmt: skip
        await self._take(await self._gateway.handle(request, f"step-{self._step['n']}"))


    async def _goes_on(self, answer: Answer, seconds: float) -> bool:
        stops = self._machine.stops
        if not await super()._goes_on(answer, seconds):
            return False
        if self._machine.stops > stops and isinstance(answer.body, bytes):
            # The kernel had all of it and went on with it: no process that stands still can call it back.
            self._counts["the kernel's"] += 1
            return False
        return True
