"""One test subject: a code object, how to launch it, and how its result is judged."""
import dataclasses
from collections.abc import Callable


def ceil(a, b):
    return -(-a // b)


@dataclasses.dataclass
class Recipe:
    name: str
    family: str  # the line of the report that counts it
    arch: str
    run: Callable  # run(hip) -> findings as text; raises judge.Wrong
