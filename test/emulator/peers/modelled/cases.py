"""The calibration cases and the rule that says which of them constants may be fitted on.

The rule, written before anything was fitted: all cases sorted by name (numbers are zero-padded); the second, fourth, sixth, ... are
fitted, the others are held out. No case is left out because of its error, and none changes sides.
"""
import dataclasses

from modelled import published


@dataclasses.dataclass(frozen=True)
class Case:
    row: published.Row
    fitted: bool

    @property
    def name(self):
        return self.row.name

    @property
    def judged(self):
        """Whether the bounds on the error hold for it: long problems, where launches and start-up do not decide."""
        p = self.row.problem
        return min(p[key] for key in ("seqlen", "m", "n", "k") if key in p) >= 2048


def cases():
    ordered = sorted(published.rows(), key=lambda row: row.name)
    return [Case(row, index % 2 == 1) for index, row in enumerate(ordered)]
