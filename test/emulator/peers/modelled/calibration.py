"""The calibration: published speeds against those of the model, case by case."""
import concurrent.futures
import re

from modelled import aiter, aiter_backward, cases, published
from modelled.session import constants as table


def launcher(objects, row):
    p = row.problem
    if row.operator == "f4gemm":
        return aiter.f4gemm(objects, **p)
    if row.operator == "attention_backward":
        causal = "bottom-right" if p["causal"] else "none"
        found = aiter_backward.attention_backward(objects, p["batch"], p["heads"], p["heads"], p["seqlen"], p["seqlen"], p["head_dim"], p["head_dim_v"],
                                                  causal)
        return found["a32_causal_br" if p["causal"] else "a32"]
    return aiter.attention_forward(objects, p["batch"], p["heads"], p["heads"], p["seqlen"], p["seqlen"], p["head_dim"], p["head_dim_v"],
                                   "bottom-right" if p["causal"] else "none")


def seconds(row, launches, constants, hypothesis=None):
    """Of the case as it was measured: kernels one after the other, and the call itself where events around it were the clock."""
    kernels = sum(x["lds_hypotheses"][hypothesis]["seconds"] if hypothesis else x["seconds"] for x in launches)
    call = constants[f"measured_call_seconds_{row.operator.removeprefix('attention_')}"] if row.timing == published.EVENTS else 0
    return kernels + call


def line(case, launches, constants):
    """What `flydsl-aot bench calibration` prints of a case; speeds in TFLOP/s as the source counts operations."""
    def tflops(hypothesis=None):
        return published.flops(case.row) / seconds(case.row, launches, constants, hypothesis) * 1e-12

    return dict(name=case.name, published=case.row.tflops, modelled=tflops(), fitted=case.fitted, error=tflops() / case.row.tflops - 1,
                judged=case.judged, lds_128=tflops("128"), lds_256=tflops("256"), published_seconds=published.seconds(case.row),
                modelled_seconds=seconds(case.row, launches, constants), constants_hash=launches[0]["constants_hash"],
                source=case.row.source, launches=launches)


def run(session, pool, objects, only):
    constants = table(session.constants)
    chosen = [case for case in cases.cases() if re.search(only, case.name)]
    running = [pool.submit(session.run, case.name, launcher(objects, case.row)) for case in chosen]
    try:
        for case, future in zip(chosen, running):
            yield line(case, future.result(), constants)
    finally:
        for future in running:
            future.cancel()
        concurrent.futures.wait(running)
