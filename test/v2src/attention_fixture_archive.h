// An archive of every attention_forward instance, with pretend code objects. Needs no library.
#pragma once

#include "flydsl_aot/flydsl_aot.h"
#include "flydsl_aot_generated/abi.h"
#include "flydsl_aot_generated/attention_forward_kernarg.h"
#include "test/src/archive/archive_fixture.h"

namespace flydsl::test {

inline archive::ArchiveSpec attention_spec() {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  spec.library_version = FLYDSL_AOT_VERSION;
  unsigned seed = 0;
  const struct {
    flydsl_aot_dtype number;
    const char *name;
  } dtypes[] = {{FLYDSL_AOT_FP16, "fp16"}, {FLYDSL_AOT_BF16, "bf16"}};
  const auto add_kernel = [&](archive::SelectionSpec &row, const std::string &name,
                              uint32_t align_bytes) {
    archive::KernelSpec kernel = fake_kernel(name, row.functional_key, ++seed);
    kernel.op = row.op;
    kernel.kernarg_layout_id = FLYDSL_AOT_ATTENTION_FORWARD_KERNARG_LAYOUT_ID;
    kernel.kernarg_bytes = FLYDSL_AOT_ATTENTION_FORWARD_KERNARG_BYTES;
    kernel.lds_dynamic_bytes = 512;
    spec.kernels.push_back(kernel);
    row.candidates.push_back({name, align_bytes, 0, 1u << 30, 0, 1u << 30});
  };
  for (const auto &dtype : dtypes) {
    for (const uint64_t dim : {64, 128}) {
      for (const uint64_t mask : {0, 1, 2}) {
        archive::SelectionSpec row;
        row.op = "attention_forward";
        row.functional_key = flydsl_aot_attention_forward_key(static_cast<uint64_t>(dtype.number),
                                                              dim, dim, mask, 0, 0, 1, 0);
        for (const char *kind : {"direct", "staged"}) {
          const std::string name = std::string("attention_forward_") + dtype.name + "_d" +
                                   std::to_string(dim) +
                                   (mask == 2   ? "_window_"
                                    : mask == 1 ? "_causal_"
                                                : "_none_") +
                                   kind;
          add_kernel(row, name, kind[0] == 'd' ? 16 : 2);
        }
        spec.selection.push_back(row);
      }
      archive::SelectionSpec features;
      features.op = "attention_forward";
      features.functional_key = flydsl_aot_attention_forward_key(
          static_cast<uint64_t>(dtype.number), dim, dim, 0, 1, 0, 1, 0);
      add_kernel(features,
                 std::string("attention_forward_") + dtype.name + "_d" + std::to_string(dim) +
                     "_features",
                 16);
      spec.selection.push_back(features);
    }
#define FLYDSL_AOT_CLASS(qk, v) {qk, v},
    const std::pair<uint64_t, uint64_t> classes[] = {
        FLYDSL_AOT_ATTENTION_FORWARD_HEAD_DIM_CLASSES(FLYDSL_AOT_CLASS)};
#undef FLYDSL_AOT_CLASS
    for (const auto &[qk, v] : classes) {
      archive::SelectionSpec row;
      row.op = "attention_forward";
      row.functional_key =
          flydsl_aot_attention_forward_key(static_cast<uint64_t>(dtype.number), qk, v, 0, 1, 0, 0, 0);
      const std::string dims =
          std::to_string(qk) + (qk == v ? std::string() : "x" + std::to_string(v));
      add_kernel(row, std::string("attention_forward_") + dtype.name + "_d" + dims + "_general", 1);
      spec.selection.push_back(row);
    }
  }
  return spec;
}

}  // namespace flydsl::test
