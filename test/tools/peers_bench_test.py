"""flydsl-aot bench --peers with the kernels themselves, which test/emulator/peers/fetch.sh has fetched."""
import json
import os
import sys
import unittest

from tool import ToolTest

SKIPPED = 77
PEERS = {name: os.environ[name] for name in ("FLYDSL_AOT_PEERS_DIR", "FLYDSL_AOT_PEERS_OBJECTS")}


class PeersBenchTest(ToolTest):
    def bench(self, q, kv, peers, *settings, operator="attention_forward"):
        shapes = [f"--set={name}={shape}" for name, shape in (("q", q), ("k", kv), ("v", kv))]
        result = self.tool("bench", operator, "--device=emulator", "--json", f"--peers={peers}", *shapes, *settings, **PEERS)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        return json.loads(result.stdout)

    def test_attention_forward(self):
        # Whole tiles and enough work-groups: kernels of one generation are within a small factor of each other.
        for q, kv, settings in (("1x16x2048x128", "1x16x2048x128", ()), ("2x8x1024x128", "2x2x1024x128", ("--set=causal=top-left",))):
            report = self.bench(q, kv, "aiter,triton", *settings)
            self.assertEqual([peer["peer"] for peer in report["peers"]], ["aiter", "triton"])
            for peer in report["peers"]:
                self.assertNotIn("refused", peer)
                self.assertTrue(peer["kernel"])
                self.assertTrue(1 / 5 < peer["seconds"] / report["seconds"] < 5, peer)
                # None does with fewer products than the definition has, and none passes the peak.
                self.assertGreaterEqual(peer["matrix_flops"], report["problem_flops"])
                self.assertLess(peer["problem_tflops"], report["peak"]["tflops"])

    def test_attention_forward_with_a_feature(self):
        for settings in (("bias=1x16x2048x2048",), ("visible=1x1x2048x2048",), ("alibi_slopes=16",), ("softcap=30",), ("dropout_p=0.1",)):
            (peer,) = self.bench("1x16x2048x128", "1x16x2048x128", "triton", *(f"--set={setting}" for setting in settings))["peers"]
            self.assertIn(settings[0].split("=")[0].split("_")[0], peer["kernel"])
        (peer,) = self.bench("1x16x2048x128", "32x16x64x128", "triton", "--set=block_table=1x32", "--set=seqused_k=2048")["peers"]
        self.assertIn("paged64", peer["kernel"])
        for settings in (("bias=1x16x2048x2048", "softcap=30"), ("bias=1x16x2048x1",)):
            (peer,) = self.bench("1x16x2048x128", "1x16x2048x128", "triton", *(f"--set={setting}" for setting in settings))["peers"]
            self.assertTrue(peer["refused"])

    def test_attention_backward(self):
        for settings in ((), ("--set=causal=top-left",)):
            shapes = [f"--set={name}=1x16x2048x128" for name in ("q", "k", "v", "out", "dout")]
            result = self.tool("bench", "attention_backward", "--device=emulator", "--json", "--peers=triton", *shapes, *settings,
                               "--set=lse=1x16x2048", **PEERS)
            self.assertEqual((result.returncode, result.stderr), (0, ""), result)
            report = json.loads(result.stdout)
            (peer,) = report["peers"]
            self.assertEqual([launch["kernel"] for launch in peer["launches"]], ["row_sums", "gradient_of_keys", "gradient_of_queries"])
            self.assertTrue(1 / 8 < peer["seconds"] / report["seconds"] < 8, peer)
            # Seven products where the definition has five.
            self.assertGreaterEqual(peer["matrix_flops"], 7 / 5 * report["problem_flops"])

    def test_attention_decode(self):
        report = self.bench("16x64x1x128", "16x8x8192x128", "triton,aiter", operator="attention_decode")
        triton, aiter = report["peers"]
        self.assertTrue(1 / 3 < triton["seconds"] / report["seconds"] < 3, triton)
        # Keys and values are twice what stays behind the L2 from call to call; both have to read them.
        self.assertGreaterEqual(triton["hbm_bytes"], 16 * 8 * 8192 * 128 * 2 * 2)
        self.assertEqual(len(triton["launches"]), 2)
        self.assertIn("576/512", aiter["refused"])

    def test_what_a_peer_cannot_do_is_said(self):
        report = self.bench("1x1x256x96", "1x1x256x96", "aiter,flydsl")
        for peer in report["peers"]:
            self.assertTrue(peer["refused"], peer)


if __name__ == "__main__":
    if os.environ.get("FLYDSL_AOT_SKIP_PEERS") == "1":
        print("skipped: FLYDSL_AOT_SKIP_PEERS=1")
        sys.exit(SKIPPED)
    unittest.main()
