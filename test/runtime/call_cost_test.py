"""What a call costs the host, of every operator whose kernels are loaded: instructions from the C function to the device's launch function
(callgrind counts them; what the device library does itself is left out) of one that differs from earlier ones in addresses, stream and seed
only, of the first of its form and of the second; and the processor time of a first use."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["CALL_COST"]
VALGRIND = os.environ["VALGRIND"]
# A call of a form that is known has at most so many instructions in this library and libc until its first launch and after it; each
# further launch of the call may add so many.
MOST_INSTRUCTIONS = 1500
MOST_A_FURTHER_LAUNCH = 350
# Of a form that is not: the first call, and the second, which is made, made again without launching, and kept. Measured ones and a
# quarter more.
MOST_ANEW_AND_TWICE = {
    "attention_backward": (12400, 69300),
    "attention_backward_features": (19900, 101200),
    "attention_decode": (6000, 32500),
    "attention_forward": (5000, 32400),
    "attention_forward_features": (5600, 38100),
    "gemm": (6800, 30700),
    "gemm_in_parts": (6900, 34300),
    "grouped_gemm": (4300, 19900),
    "layer_norm": (3900, 24000),
    "layer_norm_backward": (10100, 40000),
    "mx_quantise": (3100, 16900),
    "rms_norm": (3800, 20300),
    "rms_norm_backward": (8900, 33500),
    "scaled_gemm": (6400, 26000),
    "topk": (3900, 17000),
    "topk_in_parts": (5000, 23000),
    "topk_softmax": (3500, 16400),
}
MOST_FIRST_US = 1000
FORBIDDEN = re.compile(r"^(malloc|calloc|realloc|free|memalign|aligned_alloc|posix_memalign|_int_malloc|_int_free|mmap|brk|"
                       r"_Zn[wa]\w*|_Zd[la]\w*|operator (new|delete).*|pthread_(mutex|rwlock|cond|spin)\w*|__lll_lock\w*|syscall|getenv)(@.*)?$")


def problems():
    text = subprocess.run([PROGRAM, "list"], check=True, capture_output=True, text=True).stdout
    return {name: (op, int(launches)) for name, op, launches in (line.split() for line in text.splitlines())}


def read_dump(path):
    """Trigger, {function: own instructions}, system calls of one callgrind dump."""
    names, own, functions, system_calls, trigger = {}, True, {}, 0, None
    function = None
    for line in path.read_text().splitlines():
        if line.startswith("desc: Trigger: Client Request: "):
            trigger = line.split("Client Request: ", 1)[1]
        elif match := re.match(r"(c?fn)=\((\d+)\)(?: (.*))?$", line):
            kind, number, name = match.groups()
            if name:
                names[number] = name
            if kind == "fn":
                function = number
        elif line.startswith("calls="):
            own = False  # the next line is the callee's
        elif re.match(r"[+\-*\d]", line):
            if own:
                costs = [int(cost) for cost in line.split()[1:]]
                functions[function] = functions.get(function, 0) + costs[0]
                system_calls += costs[1] if len(costs) > 1 else 0
            own = True
    return trigger, {names[number]: count for number, count in functions.items() if count}, system_calls


class CallCostTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.problems = problems()
        cls.folder = tempfile.TemporaryDirectory()
        toggles = ["--instr-atstart=no"] + [f"--toggle-collect={function}{version}" for function in sorted({"flydsl_aot_" + op for op, _ in cls.problems.values()})
                    for version in ("", "@*")]
        subprocess.run([VALGRIND, "--tool=callgrind", "--quiet", f"--callgrind-out-file={cls.folder.name}/out", "--collect-systime=yes",
                        "--toggle-collect=hip*", *toggles, PROGRAM, "warm"], check=True)
        dumps = [read_dump(path) for path in pathlib.Path(cls.folder.name).glob("out.*")]
        cls.dumps = {trigger: (functions, system_calls) for trigger, functions, system_calls in dumps if trigger}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def expect(self, name, most, may_allocate=False):
        functions, system_calls = self.dumps[name]
        count = sum(functions.values())
        largest = ", ".join(f"{function} {own}" for function, own in sorted(functions.items(), key=lambda item: -item[1])[:6])
        print(f"{name}: {count} instructions of {most} ({largest})")
        self.assertIn("flydsl_aot_" + self.problems[name.split()[0]][0], {function.split("@")[0] for function in functions})
        self.assertLessEqual(count, most)
        if may_allocate:
            return
        self.assertEqual(system_calls, 0)
        self.assertEqual([function for function in functions if FORBIDDEN.match(function)], [])

    def test_every_operator_is_measured(self):
        self.assertEqual(set(self.dumps), {f"{name} {which}" for name in self.problems for which in ("again", "anew", "twice")})
        self.assertEqual(set(MOST_ANEW_AND_TWICE), set(self.problems))

    def test_a_call_with_other_addresses(self):
        for name, (_, launches) in self.problems.items():
            with self.subTest(name):
                self.expect(f"{name} again", MOST_INSTRUCTIONS + MOST_A_FURTHER_LAUNCH * (launches - 1))

    def test_a_call_of_another_form(self):
        for name in self.problems:
            with self.subTest(name):
                self.expect(f"{name} anew", MOST_ANEW_AND_TWICE[name][0])

    def test_a_second_call_of_a_form(self):
        for name in self.problems:
            with self.subTest(name):
                self.expect(f"{name} twice", MOST_ANEW_AND_TWICE[name][1], may_allocate=True)

    def test_a_first_use(self):
        text = subprocess.run([PROGRAM, "first"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(len(text.splitlines()), len(self.problems))
        for line in text.splitlines():
            name, loads, microseconds = line.split()
            print(f"{name}: {loads} kernels, {microseconds} us of processor time")
            with self.subTest(name):
                self.assertEqual(int(loads), self.problems[name][1])
                self.assertLess(float(microseconds), MOST_FIRST_US * int(loads))


if __name__ == "__main__":
    unittest.main()
