"""How far a result is from float64, against a stated bound."""
import numpy as np


class Wrong(AssertionError):
    pass


def close(name, got, want, frobenius, worst=None):
    """Relative Frobenius norm, and the worst element relative to the largest expected one. Non-finite values must agree exactly."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        raise Wrong(f"{name}: shape {got.shape}, expected {want.shape}")
    finite = np.isfinite(want)
    odd = np.nonzero(np.where(finite, ~np.isfinite(got), ~((got == want) | (np.isnan(got) & np.isnan(want)))))
    if len(odd[0]):
        at = tuple(int(i[0]) for i in odd)
        raise Wrong(f"{name}: {len(odd[0])} of {want.size} elements differ in finiteness, first at {at}: {got[at]}, expected {want[at]}")
    error = np.where(finite, got - np.where(finite, want, 0), 0)
    error[~finite] = 0
    scale = np.sqrt(np.sum(np.where(finite, want, 0) ** 2)) or 1.0
    relative = float(np.sqrt(np.sum(error**2)) / scale)
    top = np.max(np.abs(np.where(finite, want, 0))) or 1.0
    at = np.unravel_index(np.argmax(np.abs(error)), error.shape)
    largest = float(np.abs(error[at]) / top)
    text = f"{name} {relative:.1e}/{largest:.1e}"
    if relative > frobenius or largest > (worst or 20 * frobenius):
        bad = np.abs(error) > (worst or 20 * frobenius) * top
        raise Wrong(f"{text} (bound {frobenius:.0e}/{worst or 20 * frobenius:.0e}); {int(bad.sum())} of {want.size} bad; worst at "
                    f"{tuple(int(i) for i in at)}: {got[at]:.6g}, expected {want[at]:.6g}")
    return text


def equal(name, got, want):
    got, want = np.asarray(got), np.asarray(want)
    bad = np.nonzero(got != want)
    if len(bad[0]):
        at = tuple(int(i[0]) for i in bad)
        raise Wrong(f"{name}: {len(bad[0])} of {want.size} elements differ, first at {at}: {got[at]}, expected {want[at]}")
    return f"{name} exact"
