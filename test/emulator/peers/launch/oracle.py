"""float64 attention, forward and backward, from the definition. (H, S, D) arrays of one batch entry."""
import numpy as np


def seen(sq, sk, mask, window=None):
    i, j = np.arange(sq)[:, None], np.arange(sk)[None, :]
    if window is not None:  # left and right bounds on the top-left diagonal
        return (j >= i - window[0]) & (j <= i + window[1])
    return {"none": j < sk, "top_left": j <= i, "bottom_right": j <= i + sk - sq}[mask] & (i >= 0)


def forward(q, k, v, scale, visible, change=lambda s: s, weight=1.0):
    """q (Hq, Sq, D), k, v (Hk, Sk, D): output, natural-log LSE, probabilities. A row without keys gives 0 and -inf.

    `change` is what a feature does to the scores, `weight` what dropout multiplies the probabilities with on their way to v.
    """
    group = q.shape[0] // k.shape[0]
    k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
    s = np.where(visible, change(q @ k.transpose(0, 2, 1) * scale), -np.inf)
    top = s.max(-1, keepdims=True)
    p = np.exp(s - np.where(np.isfinite(top), top, 0))
    total = p.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.log(total[..., 0]) + np.where(np.isfinite(top), top, 0)[..., 0]
    p = p / np.where(total == 0, 1, total)
    return (p * weight) @ v, lse, p


def backward(q, k, v, do, scale, p, out):
    """dQ, and dK, dV per query head."""
    group = q.shape[0] // k.shape[0]
    k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
    dv = p.transpose(0, 2, 1) @ do
    ds = p * (do @ v.transpose(0, 2, 1) - np.sum(do * out, -1, keepdims=True))
    return ds @ k * scale, ds.transpose(0, 2, 1) @ q * scale, dv
