"""The problems of a benchmark table, our kernel's and the peers' modelled times for each, and a file that keeps them."""
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

from modelled import product_cases
from modelled.families import PRODUCTS, families

HERE = pathlib.Path(__file__).resolve().parents[1]
LEADERS, LEADERS_OF_SWEPT = 4, 6  # under each hypothesis: of the first problem of a kind; of each that says `sweep=all`
UNSUPPORTED = 3  # exit status of flydsl-aot
HYPOTHESES = ("256", "128")  # LDS bytes a clock
# A peer of the table: the peer of timing.py, and which of its configurations.
PEERS = {"aiter": ("aiter", ""), "flydsl": ("flydsl", ""), "triton": ("triton", "^(?!.*_widen_)"), "triton_widen": ("triton", "_widen_")}


@dataclasses.dataclass(frozen=True)
class Case:
    operator: str
    section: str
    peers: tuple
    text: str

    @property
    def words(self):
        return dict(word.split("=", 1) for word in self.text.split())

    @property
    def settings(self):
        """{name: value} as `flydsl-aot bench --set` takes them."""
        found = {}
        if self.operator in PRODUCTS:
            return product_cases.settings(self.operator, self.words)
        for name, value in self.words.items():
            if name == "seqused_k":
                times, number = value.split("*")
                value = ",".join([number] * int(times))
            found |= dict.fromkeys("qkv", value) if name == "qkv" else {name: value}
        if self.operator == "attention_backward":
            rows = found["q"].rpartition("x")[0]
            found |= dict.fromkeys(("out", "dout"), f"{rows}x{found['v'].rpartition('x')[2]}") | dict(lse=rows)
        return found

    @property
    def kind(self):
        """Cases of one kind differ in sizes and strides only, and the same configurations can be fast."""
        if self.operator in PRODUCTS:
            return product_cases.kind(self.words)
        return tuple(sorted((name, value if name in ("causal", "dtype", "kv_dtype", "bias_dtype") else "") for name, value in self.settings.items()))

    @property
    def swept(self):
        """Whether every configuration is tried, and the fastest ones then on the section's others of this kind."""
        return self.words.get("sweep") == "all"

    @property
    def title(self):
        return product_cases.title(self.words)

    @property
    def bits(self):
        """Of an element of the operands of a product."""
        return product_cases.bits(self.words)

    @property
    def bytes(self):
        """That a product has to read and write."""
        return product_cases.bytes_of(self.operator, self.words)

    def shape(self, name):
        return [int(size) for size in self.settings[name].split("x")]


def read_cases(path):
    cases = []
    for line in path.read_text().splitlines():
        if header := re.fullmatch(r"\[(.+)\] (\S+)", line):
            section, peers = header[1], tuple(name for name in header[2].split(",") if name != "none")
        elif line and not line.startswith("#"):
            cases.append(Case(path.stem, section, peers, line))
    return cases


def digest(*paths):
    together = hashlib.sha256()
    for path in paths:
        together.update(path.read_bytes() if path.is_file() else b"")
    return together.hexdigest()[:16]


class Runs:
    """Runs what is not yet in the cache file. A result counts for the same library, kernels and problem only."""

    def __init__(self, tool, objects, cache, jobs, configurations_of_all):
        self.tool, self.objects, self.cache, self.jobs = pathlib.Path(tool).resolve(), pathlib.Path(objects).resolve(), pathlib.Path(cache), jobs
        library = self.tool.parents[1] / "lib"
        self.emulator = library / "libflydsl_emu.so"
        self.ours = digest(self.emulator, library / "libflydsl_aot.so.0", library / "flydsl_aot.gfx950.fda")
        self.results = json.loads(self.cache.read_text()) if self.cache.is_file() else {}
        self.everywhere = configurations_of_all
        self.leaders = {}

    def _kept(self, key, run):
        key = " ".join(key)
        if key not in self.results:
            print(key, file=sys.stderr, flush=True)
            self.results[key] = run()
            partial = self.cache.with_suffix(".part")
            partial.write_text(json.dumps(self.results, indent=1))
            partial.replace(self.cache)
        return self.results[key]

    def our(self, operator, case):
        def run():
            command = [self.tool, "bench", operator, "--device=emulator", "--json", *(f"--set={n}={v}" for n, v in case.settings.items())]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == UNSUPPORTED:
                return dict(refused=done.stderr.strip())
            if done.returncode:
                sys.exit(f"{case.text}: {done.stderr}")
            report = json.loads(done.stdout)
            kept = dict(seconds={h: report["lds_hypotheses"][h]["seconds"] for h in HYPOTHESES})
            kept |= {name: report[name] for name in ("kernel", "problem", "problem_flops", "constants_hash")}
            if "launches" in report:
                kept["launches"] = [launch["kernel"] for launch in report["launches"]]
            return kept

        return self._kept(("ours", self.ours, operator, case.text), run)

    def peer(self, operator, case, name, problem):
        """`problem`: as our() found it. The configurations that are tried: see the top of a list of cases."""
        peer, only = PEERS[name]
        group = (case.section, name, case.kind)
        # FlyDSL's grouped MXFP8 kernels are compiled for a size each, few of them.
        of_each_size = operator == "attention_decode" or (operator == "grouped_gemm" and peer == "flydsl" and problem["dtype"] == "e4m3")
        if group in self.leaders and not case.swept and not self.everywhere and not of_each_size:
            only = f"^({'|'.join(re.escape(leader) for leader in sorted(self.leaders[group]))})$"
        leaders = LEADERS_OF_SWEPT if case.swept else LEADERS

        def run():
            command = [sys.executable, HERE / "timing.py", "--library", self.emulator, "--objects", self.objects, "--op", operator, "--peers", peer,
                       "--only", only, "--leaders", str(leaders), "--jobs", str(self.jobs), *(part for n, v in problem.items() for part in ("--problem", f"{n}={v}"))]
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | dict(FLYDSL_EMU_THREADS="1"))
            if done.returncode:
                sys.exit(f"{case.text}: {name}: {done.stderr}")
            answer = json.loads(done.stdout)
            return {key: answer[key] for key in ("refused", "kernel", "lds_hypotheses", "constants_hash", "configurations", "failed_configurations",
                                                 "leaders") if key in answer}

        stamps = [self.objects / f"{family}{which}.stamp" for family in families(operator, peer, problem) for which in ("", "_sweep")]
        found = self._kept(("theirs", digest(self.emulator, *stamps), operator, case.text, name, hashlib.sha256(only.encode()).hexdigest()[:8]), run)
        if "configurations" in found and (case.swept or group not in self.leaders):
            self.leaders.setdefault(group, set()).update(found["leaders"])
        return found
