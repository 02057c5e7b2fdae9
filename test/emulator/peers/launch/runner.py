"""Runs recipes, each in a process of its own (a fault of one must not end the others), and compares with the expected failures."""
import collections
import dataclasses
import os
import re
import signal
import tempfile
import time
import traceback

from launch import judge
from launch.hip import Hip


@dataclasses.dataclass
class Outcome:
    name: str
    family: str
    state: str  # pass, wrong, stopped, crash or timeout
    seconds: float
    text: str


def _child(recipe, library, output):
    """Never returns: 0 pass, 1 wrong result, 2 refused or stopped; the text goes to `output`."""
    status = 2
    try:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        os.environ["FLYDSL_EMU_ARCH"] = recipe.arch
        hip = Hip(library)
        findings = recipe.run(hip)
        hip.check_guards()
        print("; ".join(findings), flush=True)
        status = 0
    except judge.Wrong as error:
        print(error, flush=True)
        status = 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def run_one(recipe, library, timeout_s):
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _child(recipe, library, output)
        ended = 0
        while not ended and time.monotonic() - start < timeout_s:
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended:
                time.sleep(0.002)
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        seconds = time.monotonic() - start
        output.seek(0)
        text = output.read().decode(errors="replace").strip()
    if not ended:
        state = "timeout"
    elif os.WIFSIGNALED(status):
        state, text = "crash", f"signal {os.WTERMSIG(status)}\n{text}"
    else:
        state = {0: "pass", 1: "wrong"}.get(os.WEXITSTATUS(status), "stopped")
    return Outcome(recipe.name, recipe.family, state, seconds, text)


def summary(outcome):
    """What the emulator said about where it stopped, else the last line."""
    lines = outcome.text.splitlines() or [""]
    said = [line.removeprefix("flydsl_emu:").strip() for line in lines if line.startswith("flydsl_emu:") and "work-group" in line]
    return (said or lines[-1:])[0][:400]


def read_expected(path):
    """{first word: the rest} of a file's lines; # starts a comment line."""
    expected = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(" ")
            if not reason.strip():
                raise ValueError(f"{path}: {name} has no reason")
            expected[name] = reason.strip()
    return expected


def reports_of(outcome):
    """Names of the checks (emulator/checks) that said something while the recipe ran."""
    return sorted(set(re.findall(r"^flydsl_emu: .*work-group .*`: (\w+): ", outcome.text, re.MULTILINE)))


def verdict_on_reports(outcomes, expected):
    """As verdict(), for runs with checks that warn. `expected`: {recipe: "check,check reason"}."""
    lines, good = [], bool(outcomes)
    for outcome in outcomes:
        found, listed = reports_of(outcome), expected.get(outcome.name, "").split(" ")[0].split(",")
        if outcome.state != "pass" or found != sorted(filter(None, listed)):
            good = False
            first = next((line for line in outcome.text.splitlines() if line.startswith("flydsl_emu:")), summary(outcome))
            lines.append(f"FAIL {outcome.name}: {outcome.state}, reports of {found}, expected {listed}: {first[:400]}")
    for name in sorted(set(expected) - {o.name for o in outcomes}):
        good = False
        lines.append(f"STALE {name} is in expected_reports.txt, but there is no such recipe")
    silent = sum(not reports_of(o) for o in outcomes)
    lines.append(f"{len(outcomes)} recipes: {silent} without a report, {len(outcomes) - silent} with reports")
    return lines, good


def verdict(outcomes, expected):
    """(lines to print, whether all is as expected). `expected` is for these recipes."""
    lines, good = [], True
    families = collections.defaultdict(list)
    for outcome in outcomes:
        families[outcome.family].append(outcome)
    for family, members in families.items():
        passed = sum(o.state == "pass" for o in members)
        lines.append(f"{family}: {passed} of {len(members)} pass, {sum(o.seconds for o in members):.0f} s")
    for outcome in outcomes:
        if outcome.state == "pass" and outcome.name in expected:
            good = False
            lines.append(f"STALE {outcome.name} passes; remove it from expected_failures.txt ({expected[outcome.name]})")
        elif outcome.state != "pass":
            listed = outcome.name in expected
            good = good and listed
            lines.append(f"{'expected' if listed else 'FAIL'} {outcome.state} {outcome.name}: {summary(outcome)}")
    for name in sorted(set(expected) - {o.name for o in outcomes}):
        good = False
        lines.append(f"STALE {name} is in expected_failures.txt, but there is no such recipe")
    passed = sum(o.state == "pass" for o in outcomes)
    known = sum(o.state != "pass" and o.name in expected for o in outcomes)
    lines.append(f"{len(outcomes)} recipes: {passed} pass, {known} expected failures, {len(outcomes) - passed - known} failures")
    return lines, good and bool(outcomes)
