"""Faults of a backend on one graph: it raises, gives something wrong, or takes too long.

check = FaultCheck(accuracy="default")
fault = find_fault(gm, inputs, backend, check)    # None: the backend does what eager does
fault.kind, fault.detail                          # "crash", "RuntimeError: ..."
"""

from attrs import field, frozen, validators

from ._tolerance import Tolerance

ACCURACY: dict[str, Tolerance | None] = {
    "crash": None,  # errors only
    "loose": Tolerance(rtol=1e-2, atol=1e-2),
    "default": Tolerance(),
    "strict": Tolerance(rtol=0.0, atol=0.0),
}


@frozen
class FaultCheck:
    """The condition for a fault.

    `accuracy` is a key of `ACCURACY`. `seconds`: compiling and one call that take longer are a
    fault, too. `direct`: the graph consists of ATen operators, and goes to the compiler itself,
    without AOTAutograd and without the contracts of `lower`.
    """

    accuracy: str = field(default="default", validator=validators.in_(ACCURACY))
    seconds: float | None = None
    direct: bool = False


ORDINARY_CHECK = FaultCheck()


@frozen
class Fault:
    """One fault: its kind is "crash", "wrong" or "slow". `signature` is equal for faults that are
    likely to have one cause."""

    kind: str
    detail: str
    signature: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"
