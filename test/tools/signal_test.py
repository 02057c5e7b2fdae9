"""A signal in the middle of `flydsl-aot run`: no file appears, none is left, what was there stays."""
import os
import signal
import subprocess
import time
import unittest

from tool import TOOL, ToolTest, write_npy


class SignalTest(ToolTest):
    def test_no_temporary_file_is_left(self):
        inputs = [f"--in={name}={write_npy(self.folder / (name + '.npy'), '<u2', (1, 1, 64, 64))}" for name in "qkv"]
        results = self.folder / "results"
        results.mkdir()
        (results / "out.npy").write_text("precious")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = subprocess.Popen([TOOL, "run", "attention_forward", "--device=emulator", *inputs, "--set=dtype=bf16",
                                        f"--out=out={results}/out.npy", f"--out=lse={results}/lse.npy", "--repeat=1000000"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                       env={k: v for k, v in os.environ.items() if not k.startswith("FLYDSL_EMU_")})
            try:
                deadline = time.monotonic() + 60
                while len(os.listdir(results)) < 3 and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.01)
                self.assertEqual(len(os.listdir(results)), 3)
                process.send_signal(number)
                _, errors = process.communicate(timeout=60)
            finally:
                process.kill()
                process.wait()
            self.assertEqual((process.returncode, errors), (-number, ""))
            self.assertEqual(os.listdir(results), ["out.npy"])
            self.assertEqual((results / "out.npy").read_text(), "precious")


if __name__ == "__main__":
    unittest.main()
