"""Runs launches under the timing model, each problem in a process of its own, and hands back what the model says about every launch."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import traceback

from launch.hip import Hip


TABLE = pathlib.Path(__file__).resolve().parents[4] / "emulator/timing/constants.inc"


class Failed(RuntimeError):
    pass


def constants(changes=None):
    """{name: value} of the model's table, with the "name value" lines of a file of changes."""
    table = {name: float(value) for name, value in re.findall(r"^FLYDSL_TIMING_CONSTANT\((\w+), ([^,]+),", TABLE.read_text(), re.MULTILINE)}
    for line in pathlib.Path(changes).read_text().splitlines() if changes else []:
        if line.strip() and not line.startswith("#"):
            name, value = line.split()
            table[name] = float(value)
    return table


class Session:
    def __init__(self, library, mode="sample", constants=None, save=None):
        """`constants`: a file of changes to the table; `save`: a folder for traces that emulator/timing's replay reads."""
        self.library, self.mode, self.constants, self.save = str(library), mode, constants, save
        self.folder = tempfile.mkdtemp(prefix="modelled-")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def end_with_signals(self):
        """SIGINT and SIGTERM end this process and, by PR_SET_PDEATHSIG, those that run launches, and leave no files."""
        def end(number, _):
            self.close()
            os._exit(128 + number)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)

    def _environment(self, log, label):
        values = dict(FLYDSL_EMU_ARCH="gfx950", FLYDSL_EMU_TIMING=log, FLYDSL_EMU_TIMING_MODE=self.mode, FLYDSL_EMU_LOG="1")
        if self.constants:
            values["FLYDSL_EMU_TIMING_CONSTANTS"] = str(self.constants)
        if self.save:
            values["FLYDSL_EMU_TIMING_SAVE"] = str(pathlib.Path(self.save, label.replace("/", "_")))
        return values

    def run(self, label, problem):
        """problem(hip) launches kernels. Their JSON objects, in order; Failed with what was said if anything went wrong."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            log, said = os.path.join(folder, "launches.jsonl"), os.path.join(folder, "output")
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
                    with open(said, "w") as output:
                        os.dup2(output.fileno(), 1)
                        os.dup2(output.fileno(), 2)
                    os.environ |= self._environment(log, label)
                    problem(Hip(self.library))
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(status)
            _, status = os.waitpid(child, 0)
            text = pathlib.Path(said).read_text(errors="replace").strip() if os.path.exists(said) else ""
            if status:
                reason = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else text.splitlines()[-1] if text else "no output"
                raise Failed(f"{label}: {reason}", text)
            if not os.path.exists(log):
                raise Failed(f"{label}: the library wrote no timing; was it built with the timing model?", text)
            return [json.loads(line) for line in pathlib.Path(log).read_text().splitlines()]
