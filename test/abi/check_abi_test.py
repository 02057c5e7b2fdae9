"""check_abi.py finds what breaks a program that was built before, and lets additions pass."""
import copy
import unittest

import check_abi

OLD = {"version": 100, "soname": "libflydsl_aot.so.0", "symbols": {"flydsl_aot_open": "FLYDSL_AOT_0"}, "enumerators": {"FLYDSL_AOT_OK": 0},
       "structs": {"flydsl_aot_gemm_params": {"bytes": 24, "fields": {"alpha": ["f32", 4], "a": ["pointer", 8]}}}}


class Differences(unittest.TestCase):
    def check(self, expected, change):
        new = copy.deepcopy(OLD)
        change(new)
        found = check_abi.differences(OLD, new)
        self.assertEqual(len(found), expected, found)

    def test_additions_pass(self):
        def change(new):
            new["symbols"]["flydsl_aot_new"] = "FLYDSL_AOT_0"
            new["enumerators"]["FLYDSL_AOT_NEW"] = 7
            new["structs"]["flydsl_aot_gemm_params"]["bytes"] = 32
            new["structs"]["flydsl_aot_gemm_params"]["fields"]["beta"] = ["f32", 24]
            new["structs"]["flydsl_aot_new_params"] = {"bytes": 8, "fields": {}}
        self.check(0, lambda new: None)
        self.check(0, change)

    def test_breaks_are_found(self):
        gemm = lambda new: new["structs"]["flydsl_aot_gemm_params"]
        self.check(1, lambda new: new["symbols"].clear())
        self.check(1, lambda new: new["symbols"].update(flydsl_aot_open="FLYDSL_AOT_1"))
        self.check(1, lambda new: new["enumerators"].update(FLYDSL_AOT_OK=1))
        self.check(1, lambda new: new["structs"].clear())
        self.check(1, lambda new: gemm(new).update(bytes=16))
        self.check(1, lambda new: gemm(new)["fields"].update(alpha=["f32", 12]))
        self.check(1, lambda new: gemm(new)["fields"].update(alpha=["i32", 4]))
        self.check(1, lambda new: gemm(new)["fields"].pop("a"))
        self.check(1, lambda new: gemm(new)["fields"].update(beta=["f32", 16]))

    def test_another_name_is_another_library(self):
        self.check(0, lambda new: new.update(soname="libflydsl_aot.so.1", symbols={}))


if __name__ == "__main__":
    unittest.main()
