"""What other architectures with matrix instructions have: all that the host may look for."""

import unittest

import support  # noqa: F401
from describe import architectures, attention_backward, attention_decode, attention_forward


def _keys(operator, arch):
    return {instance.key for instance in operator.OPERATOR.instances(arch)}


class Attention(unittest.TestCase):
    def others(self):
        others = [arch for arch in architectures.MATRIX if arch != "gfx950"]
        self.assertEqual(others, ["gfx90a", "gfx942"])
        return others

    def test_every_general_instance_of_gfx950_is_there(self):
        for operator in (attention_forward, attention_backward):
            general = {key for key in _keys(operator, "gfx950") if dict(key).get("general") and not dict(key).get("padded")}
            self.assertGreaterEqual(len(general), 22)
            for arch in self.others():
                self.assertLessEqual(general, _keys(operator, arch), arch)

    def test_every_pass_of_a_call_without_fused_is_there(self):
        numbers = {attention_backward.PASSES[name] for name in ("prepare", "keys", "queries", "bias", "sinks")}
        for arch in self.others():
            self.assertEqual({dict(key)["pass"] for key in _keys(attention_backward, arch)}, numbers)

    def test_decode_has_what_its_tables_promise(self):
        for arch in self.others():
            self.assertEqual(_keys(attention_decode, arch), _keys(attention_decode, "gfx950"))

    def test_work_groups_of_a_plan_share_the_lds(self):
        for arch in self.others():
            for instance in attention_decode.OPERATOR.instances(arch):
                key = dict(instance.key)
                if not key.get("row_blocks"):
                    continue
                row_bytes = max(key["head_dim_qk"], key["head_dim_v"]) * (1 if key["kv_format"] else 2) + 16
                self.assertGreaterEqual(instance.tile[2], 1)
                keys = int(instance.name.rsplit("n", 1)[1])  # of all tiles of a step
                self.assertLessEqual(keys * row_bytes * instance.tile[2], architectures.lds_bytes(arch))

    def test_instances_differ_in_their_tiles_only_where_lds_does(self):
        for operator in (attention_forward, attention_backward, attention_decode):
            one, other = (operator.OPERATOR.instances(arch) for arch in self.others())
            self.assertEqual(one, other)


if __name__ == "__main__":
    unittest.main()
