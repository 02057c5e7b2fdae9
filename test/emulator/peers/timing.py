#!/usr/bin/env python3
"""What the emulator's timing model says about third-party kernels. A JSON object a line on stdout; every figure is modelled.

usage: timing.py --library libflydsl_emu.so --objects DIR --op OP --problem NAME=VALUE... --peers aiter,triton,flydsl
       timing.py --library libflydsl_emu.so --objects DIR --calibration [--only REGEX]

With --op: a line for each peer, in their order: "peer", then either "refused" (why the peer has no kernel for the problem) or "kernel",
"seconds", "constants_hash" and "launches", what the model says about each launch; where a peer chooses among compiled configurations,
"configurations" has the seconds of all, fastest first; those of kernels that are launched one after the other are chosen one by one, and named together in
"kernel". "lds_hypotheses" has, for each, the seconds and the kernel of the configuration that is
fastest under it, "leaders" the fastest few under each.
With --calibration: a line for each case of modelled/cases.py: "name", "published" and "modelled" in TFLOP/s, "fitted", "error", ...
Exit status: 0; 1 a launch failed; 2 usage; 3 the objects are not in DIR, 77 skipped (FLYDSL_AOT_SKIP_PEERS=1).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import sys

from launch import environment
from modelled.families import families

PEERS = ("aiter", "triton", "flydsl")
OBJECTS_MISSING = 3


def require(objects, families):
    for family in families:
        if not (objects / f"{family}.stamp").is_file():
            print(f"no {family} kernels in {objects}; get them: test/emulator/peers/fetch.sh {objects} {family}", file=sys.stderr)
            sys.exit(OBJECTS_MISSING)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--library", required=True)
    parser.add_argument("--objects", required=True, type=pathlib.Path)
    parser.add_argument("--op")
    parser.add_argument("--problem", action="append", default=[])
    parser.add_argument("--peers", default="")
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--only", default="", help="regular expression on the names of cases, or of configurations")
    parser.add_argument("--leaders", type=int, default=4, help="how many configurations to name as the fastest under each hypothesis")
    parser.add_argument("--constants", default=os.environ.get("FLYDSL_EMU_TIMING_CONSTANTS"), help="file of changes to the model's constants")
    parser.add_argument("--save", help="folder for traces that flydsl_timing_replay reads")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="problems at a time")
    options = parser.parse_args()
    if bool(options.op) == options.calibration:
        parser.error("one of --op and --calibration")
    options.peers = [peer for peer in options.peers.split(",") if peer]
    if unknown := set(options.peers) - set(PEERS):
        parser.error(f"--peers: unknown {sorted(unknown)}")
    if options.op and not options.peers:
        parser.error("--op needs --peers")
    options.problem = dict(entry.split("=", 1) for entry in options.problem)
    return options


def totals(launches):
    hypotheses = {name: sum(x["lds_hypotheses"][name]["seconds"] for x in launches) for name in launches[0]["lds_hypotheses"]}
    return dict(hypotheses=hypotheses, seconds=sum(x["seconds"] for x in launches), constants_hash=launches[0]["constants_hash"], matrix_flops=sum(
        x["matrix_flops"] for x in launches), hbm_bytes=sum(x["hbm_bytes"] for x in launches), launches=launches)


def together(stages, key):
    """(names of the fastest of each stage, the totals of all their launches)."""
    fastest = [min(outcomes, key=lambda name, outcomes=outcomes: key(outcomes[name])) for outcomes in stages]
    return " + ".join(fastest), totals([launch for name, outcomes in zip(fastest, stages) for launch in outcomes[name]["launches"]])


def model_peer(session, pool, options, peer):
    from modelled import operators, session as sessions
    from modelled.tensors import Unsupported

    try:
        found = operators.launchers(options.objects, options.op, peer, options.problem)
    except Unsupported as reason:
        return dict(peer=peer, refused=str(reason))
    # Kernels that are launched one after the other are chosen one by one.
    parts = found if isinstance(found, list) else [found]
    running = [{name: pool.submit(session.run, name, run) for name, run in part.items() if re.search(options.only, name)} for part in parts]
    stages, failures = [{} for _ in parts], {}
    for part, outcomes in zip(running, stages):
        for name, future in part.items():
            try:
                outcomes[name] = totals(future.result())
            except sessions.Failed as error:
                failures[name] = error
        if not outcomes:
            raise next(iter(failures.values()), sessions.Failed(f"{peer}: no configuration is named like '{options.only}'"))
    kernel, whole = together(stages, lambda outcome: outcome["seconds"])
    answer = dict(peer=peer, kernel=kernel, **whole)
    answer["lds_hypotheses"], leaders = {}, set()
    for hypothesis in answer.pop("hypotheses"):
        def seconds(outcome, hypothesis=hypothesis):
            return outcome["hypotheses"][hypothesis]

        kernel, whole = together(stages, seconds)
        answer["lds_hypotheses"][hypothesis] = dict(seconds=seconds(whole), kernel=kernel)
        for outcomes in stages:
            leaders.update(sorted(outcomes, key=lambda name, outcomes=outcomes: seconds(outcomes[name]))[:options.leaders])
    answer["leaders"] = sorted(leaders)
    if sum(map(len, parts)) > 1:
        ranked = [(name, outcomes[name]["seconds"]) for outcomes in stages for name in sorted(outcomes, key=lambda name: outcomes[name]["seconds"])]
        answer["configurations"] = dict(ranked)
        answer["failed_configurations"] = {name: error.args[0] for name, error in failures.items()}
    return answer


def main():
    options = parse()
    needed = ("aiter", "triton_attention") if options.calibration else [
        family for peer in options.peers for family in families(options.op, peer, options.problem)]
    if os.environ.get("FLYDSL_AOT_SKIP_PEERS") != "1":
        require(options.objects, needed)
    environment.enter(options.objects)
    if not pathlib.Path(options.library).is_file():
        sys.exit(f"no library {options.library}")
    from modelled import calibration
    from modelled.session import Failed, Session

    session = Session(options.library, constants=options.constants, save=options.save)
    session.end_with_signals()
    # Threads that each wait for a process; the library in it uses one thread, so that `jobs` processes fill the machine.
    if options.jobs > 1:
        os.environ["FLYDSL_EMU_THREADS"] = "1"
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            lines = calibration.run(session, pool, options.objects, options.only) if options.calibration else \
                (model_peer(session, pool, options, peer) for peer in options.peers)
            for line in lines:
                print(json.dumps(line), flush=True)
    except Failed as error:
        print("\n".join(str(part) for part in reversed(error.args)), file=sys.stderr)
        return 1
    finally:
        session.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
