"""flydsl-aot bench OP and trace: the timing model's answer, its reports and what is refused."""
import html.parser
import json
import os
import re
import struct
import subprocess
import time
import unittest
import zlib

from tool import SMOLLM2, TOOL, ToolTest

BAD, UNSUPPORTED, FAILURE = 2, 3, 4
VOID = {"meta", "line", "circle", "rect", "br"}


def shapes(q="1x2x512x128", kv=None):
    return [f"--set={name}={shape}" for name, shape in (("q", q), ("k", kv or q), ("v", kv or q))]


def png_pixels(content):
    """(width, height, rows of RGB bytes) of an 8-bit RGB PNG without interlace; checks every chunk's checksum."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at:at + 8])
        body = content[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", content[at + 8 + length:at + 12 + length])[0]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert (depth, colour, interlace) == (8, 2, 0)
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    raw, stride = zlib.decompress(data), 3 * width
    rows, above = [], bytes(stride)
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left, up, corner = (row[i - 3] if i >= 3 else 0), above[i], (above[i - 3] if i >= 3 else 0)
            paeth = min((abs(left + up - corner - p), rank, p) for rank, p in enumerate((left, up, corner)))[2]
            row[i] = (row[i] + (0, left, up, (left + up) // 2, paeth)[kind]) & 255
        above = bytes(row)
        rows.append(above)
    return width, height, rows


class Page(html.parser.HTMLParser):
    """Elements must nest, and nothing may be loaded."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        assert not {"src", "href", "data", "action"} & {name for name, _ in attributes}, (tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


class ModelTest(ToolTest):
    def model(self, *arguments, command="bench", **environment):
        result = self.tool(command, "attention_forward", "--device=emulator", *arguments, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        return result.stdout

    def refused(self, status, words, *arguments, command="bench", device="emulator", **environment):
        self.expect_error(status, words, command, "attention_forward", f"--device={device}", *arguments, **environment)

    def test_json(self):
        report = json.loads(self.model("--json", *shapes()))
        self.assertIs(report["modelled"], True)
        self.assertRegex(report["constants_hash"], "^[0-9a-f]{16}$")
        self.assertEqual(report["arch"], "gfx950")
        self.assertEqual((report["operator"], report["backend"]), ("attention_forward", "native"))
        self.assertEqual(report["kernel"], "attention_forward_bf16_d128_none_direct_m128n64")
        self.assertEqual(report["inputs"]["q"], "1x2x512x128 bf16")
        self.assertEqual(report["problem_flops"], 4 * 2 * 512 * 512 * 128)
        self.assertAlmostEqual(report["problem_tflops"] * report["seconds"] * 1e12 / report["problem_flops"], 1, 6)
        # The tiles are whole: the kernel multiplies what the definition does.
        self.assertEqual(report["matrix_flops"], report["problem_flops"])
        self.assertGreater(report["seconds"], 1e-6)
        self.assertLess(report["seconds"], 1e-3)
        self.assertEqual(set(report["utilisation"]), {"mfma", "valu", "transcendental", "salu", "lds", "vmem"})
        self.assertEqual(set(report["lds_hypotheses"]), {"128", "256"})
        for share in [*report["utilisation"].values(), *report["stalls"].values(), report["idle"], report["l2_hit_rate"],
                      report["share_of_peak"]]:
            self.assertTrue(0 <= share <= 1, report)
        self.assertGreater(report["utilisation"]["mfma"], 0)
        self.assertNotIn("profile", report)
        self.assertNotIn("timeline", report)

    def test_the_same_twice(self):
        first, second = (json.loads(self.model("--json", *shapes("1x1x256x64"))) for _ in range(2))
        for report in (first, second):
            del report["host_seconds"]
        self.assertEqual(first, second)

    def test_flops_of_the_problem(self):
        def flops(*arguments):
            return json.loads(self.model("--json", *arguments))["problem_flops"]

        each = 4 * 64  # two products of 64, multiplication and addition
        self.assertEqual(flops(*shapes("2x3x7x64", "2x1x130x64")), 2 * 3 * 7 * 130 * each)
        self.assertEqual(flops(*shapes("1x1x130x64"), "--set=causal=top-left"), 130 * 131 // 2 * each)
        # Row i of 130 sees keys up to i - 123 of 7.
        self.assertEqual(flops(*shapes("1x1x130x64", "1x1x7x64"), "--set=causal=bottom-right"), 7 * 8 // 2 * each)
        # Row i of 7 sees keys up to i + 123 of 130.
        self.assertEqual(flops(*shapes("1x1x7x64", "1x1x130x64"), "--set=causal=bottom-right"),
                         sum(124 + i for i in range(7)) * each)

    def test_text_is_labelled(self):
        text = self.model(*shapes(), "--set=causal=top-left", "--out=lse")
        for words in ("modelled", "no GPU was asked", "EMULATED gfx950", "constants", "causal = top-left", "if LDS",
                      "normal, seed 1"):
            self.assertIn(words, text)
        files = [f"--in={name}={SMOLLM2}/layer00_{name}.npy" for name in "qkv"]
        self.assertIn("data       from files", self.model(*files, "--set=dtype=bf16"))

    def test_report(self):
        folder = self.folder / "new" / "report"
        self.model(*shapes(), "--report", folder)
        self.assertEqual(sorted(p.name for p in folder.iterdir()),
                         ["annotated.txt", "report.html", "report.json", "roofline.png"])
        report = json.loads((folder / "report.json").read_text())
        listing = (folder / "annotated.txt").read_text()
        page = Page()
        page.feed((folder / "report.html").read_text())
        self.assertEqual(page.open, [])
        self.assertTrue({"svg", "table", "pre"} <= page.seen)
        for text in (listing, page.text):
            for words in ("modelled", report["constants_hash"], report["kernel"], "v_mfma_f32", "s_endpgm"):
                self.assertIn(words, text)
        # The listing holds the whole profile, and the profile what the kernel did: each wave ends once, and the
        # products that issued are those of the work-groups that it shows.
        rows = re.findall(r"^ *(\d+) +(\d+) +\S+ %  ([0-9a-f]{8}) (\S+)", listing, re.M)
        self.assertEqual(len(rows), len(report["profile"]))
        issued = {text: 0 for _, _, _, text in rows}
        for count, _, _, text in rows:
            issued[text] += int(count)
        waves = issued["s_endpgm"]
        self.assertGreater(waves, 0)
        # A wave has 32 rows, 512 keys and 128 channels in two products of 32x32x16 instructions.
        matrix = sum(count for text, count in issued.items() if text.startswith("v_mfma_f32_32x32x16"))
        self.assertEqual(matrix, waves * 2 * 512 * 128 // (32 * 16))
        width, height, pixels = png_pixels((folder / "roofline.png").read_bytes())
        colours = {bytes(row[i:i + 3]) for row in pixels for i in range(0, 3 * width, 3)}
        self.assertGreater(height, 400)
        self.assertIn(bytes.fromhex("c03020"), colours)  # the launch
        self.assertIn(bytes.fromhex("1f4e8c"), colours)  # the roofs

    def test_trace(self):
        file = self.folder / "trace.json"
        text = self.model(*shapes(), "-o", file, command="trace")
        self.assertIn("modelled", text)
        trace = json.loads(file.read_text())
        self.assertIs(trace["otherData"]["modelled"], True)
        self.assertRegex(trace["otherData"]["constants_hash"], "^[0-9a-f]{16}$")
        ends, names, waves = {}, {}, 0
        for event in trace["traceEvents"]:
            track = event["pid"], event["tid"]
            if event["ph"] == "M":
                names[track] = event["args"]["name"]
                continue
            self.assertEqual(event["ph"], "X")
            self.assertIn(track, names)
            self.assertGreaterEqual(event["dur"], 0)
            self.assertGreaterEqual(event["ts"] + 1e-3, ends.get(track, 0), event)
            ends[track] = event["ts"] + event["dur"]
            waves += names[track].startswith("wave ")
        self.assertEqual(waves, trace["otherData"]["events"])
        self.assertTrue(any(name.startswith("SIMD 0 matrix") for name in names.values()), names)
        self.model(*shapes(), "-o", file, "--events=10", command="trace")
        short = json.loads(file.read_text())
        self.assertEqual((short["otherData"]["events"], short["otherData"]["truncated"]), (10, True))

    def test_peers(self):
        # A stand-in for test/emulator/peers/timing.py, which also floods both pipes.
        constants = json.loads(self.model("--json", *shapes("1x1x128x64")))["constants_hash"]
        (self.folder / "timing.py").write_text(
            "import json, sys\n"
            "open(sys.argv[sys.argv.index('--objects') + 1], 'w').write(json.dumps(sys.argv[1:]))\n"
            "sys.stderr.write('x' * 300000 + '\\n')\n"
            "print(json.dumps({'peer': 'aiter', 'kernel': 'k' * 300000, 'seconds': 1e-3, 'matrix_flops': 1e9, 'hbm_bytes': 1e6, "
            f"'constants_hash': '{constants}'}}))\n"
            "print(json.dumps({'peer': 'triton', 'refused': 'cannot'}))\n")
        seen = self.folder / "seen"
        environment = dict(FLYDSL_AOT_PEERS_DIR=str(self.folder), FLYDSL_AOT_PEERS_OBJECTS=str(seen))
        report = json.loads(self.model("--json", *shapes(), "--set=causal=top-left", "--peers=aiter,triton", **environment))
        self.assertEqual([peer["peer"] for peer in report["peers"]], ["aiter", "triton"])
        self.assertAlmostEqual(report["peers"][0]["problem_tflops"], report["problem_flops"] / 1e-3 * 1e-12)
        given = json.loads(seen.read_text())
        for pair in (("--op", "attention_forward"), ("--problem", "seqlen_k=512"), ("--problem", "causal=top-left"),
                     ("--problem", "head_dim_v=128"), ("--peers", "aiter,triton")):
            self.assertIn(pair, list(zip(given, given[1:])))
        paged = [f"--set={setting}" for setting in ("q=2x4x512x64", "k=32x4x32x64", "v=32x4x32x64", "block_table=2x16", "seqused_k=512,100")]
        for arguments, told in (([*shapes("2x4x512x64"), "--set=bias=1x4x512x512"], {"features=bias", "bias=fp32 1x4x512x512"}),
                                (paged, {"features=seqused_k,block_table", "block_size=32", "seqlen_k=512", "seqused_k=512,100"})):
            self.model(*arguments, "--peers=aiter,triton", **environment)
            self.assertLessEqual(told, set(json.loads(seen.read_text())))
        table = self.model(*shapes(), "--peers=aiter,triton", **environment)
        self.assertRegex(table, r"aiter +1\.000 ms")
        self.assertRegex(table, r"triton .*cannot")
        for status, expected, code in ((3, BAD, "print('run fetch.sh', file=sys.stderr); sys.exit(3)"),
                                       (1, FAILURE, "sys.exit('it broke')"),
                                       (0, FAILURE, "print('{\"peer\": \"triton\"}')"),
                                       ("other", FAILURE, "print('{\"peer\": \"aiter\", \"constants_hash\": \"0\"}')")):
            (self.folder / "timing.py").write_text(f"import sys\n{code}\n")
            words = {3: "run fetch.sh", 1: "it broke", 0: "no result for aiter", "other": ["constants", constants]}
            self.refused(expected, words[status], *shapes(),
                         "--peers=aiter", **environment)

    def test_peers_end_with_the_command(self):
        (self.folder / "timing.py").write_text(
            "import os, pathlib, signal, sys, time\n"
            "where = pathlib.Path(sys.argv[0]).parent\n"
            "def end(*_):\n    (where / 'ended').write_text('')\n    sys.exit(1)\n"
            "signal.signal(signal.SIGINT, end)\n"
            "(where / 'begun').write_text('')\n"
            "time.sleep(60)\n")
        process = subprocess.Popen([TOOL, "bench", "attention_forward", "--device=emulator", *shapes("1x1x128x64"), "--peers=aiter"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=dict(os.environ, FLYDSL_AOT_PEERS_DIR=str(self.folder)))

        def wait_for(name):
            deadline = time.monotonic() + 60
            while not (self.folder / name).exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertTrue((self.folder / name).exists(), name)

        try:
            wait_for("begun")
        finally:
            process.terminate()
            process.wait()
        wait_for("ended")

    def test_refused(self):
        self.refused(BAD, "--device emulator", *shapes(), device="none")
        self.refused(BAD, ["k=SHAPE", "missing"], "--set=q=1x1x2x64")
        self.refused(BAD, "1x2xx", *shapes("1x2xx"))
        self.refused(BAD, "'biased' is unknown", *shapes(), "--set=biased=1x1")
        self.refused(BAD, "also given", *shapes(), f"--in=q={SMOLLM2}/layer00_q.npy", "--set=dtype=bf16")
        self.refused(BAD, "--out dq", *shapes(), "--out=dq")
        self.refused(BAD, "no kernel is needed", *shapes("1x0x5x64"))
        self.refused(BAD, ["cuda", "aiter, triton, flydsl"], *shapes(), "--peers=cuda")
        self.refused(BAD, "twice", *shapes(), "--peers=aiter,aiter")
        self.refused(BAD, "''", *shapes(), "--peers=aiter,")
        for option in ("--peers", "--report"):
            self.refused(BAD, [option, "empty"], *shapes(), option, "")
        self.refused(BAD, ["timing.py", "FLYDSL_AOT_PEERS_DIR"], *shapes(), "--peers=aiter",
                     FLYDSL_AOT_PEERS_DIR=str(self.folder))
        self.refused(UNSUPPORTED, "UNSUPPORTED_SIZE", *shapes("1x1x2147483648x64"))
        self.refused(FAILURE, "OUT_OF_DEVICE_MEMORY", *shapes("1x1x2048x128"), FLYDSL_EMU_MEMORY_MIB="1")
        self.refused(FAILURE, "FLYDSL_EMU_COMPUTE_UNITS is 32", *shapes(), FLYDSL_EMU_COMPUTE_UNITS="32")
        file = self.folder / "file"
        file.write_text("precious")
        self.refused(BAD, "--report", *shapes(), "--report", file)
        self.refused(BAD, "No such file", *shapes(), "-o", self.folder / "no" / "such", command="trace")
        self.refused(BAD, "not a regular file", *shapes(), "-o", "/dev/null", command="trace")
        self.refused(BAD, "--events", *shapes(), "-o", file, "--events=0", command="trace")
        self.assertEqual(file.read_text(), "precious")
        self.expect_error(BAD, "'attention' is unknown", "bench", "attention", "--device=emulator")
        self.expect_error(BAD, "operator", "bench")
        self.expect_error(BAD, "-o", "trace", "attention_forward", "--device=emulator", *shapes())
        self.expect_error(FAILURE, "DEVICE_LIBRARY_NOT_FOUND", "bench", "attention_forward", "--device=hip", *shapes(),
                          FLYDSL_AOT_HIP_LIBRARY="/no/such/libamdhip64.so")


if __name__ == "__main__":
    unittest.main()
