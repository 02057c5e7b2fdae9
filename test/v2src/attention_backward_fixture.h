// An opened library on a pretend device, with an archive of attention_backward's kernels, and a valid problem to start
// from. The code objects are pretend too: launches are recorded, not computed.
#pragma once

#include "flydsl_aot/flydsl_aot.hpp"
#include "flydsl_aot_generated/abi.h"
#include "flydsl_aot_generated/attention_backward_kernarg.h"
#include "test/src/archive/archive_fixture.h"
#include "test/src/device/fake_hip.h"

namespace flydsl::test {

using BackwardParams = flydsl_aot_attention_backward_params;
using BackwardKernarg = flydsl_aot_attention_backward_kernarg;

inline void *at(uint64_t number) {
  return reinterpret_cast<void *>(number);
}
constexpr uint64_t kGiB = uint64_t{1} << 30;
// Of the tensors: far apart, aligned to 4096 bytes.
enum Place : uint64_t { kQ = 4, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv, kTerm, kDterm, kNumbers };
inline void *place(Place tensor, uint64_t bytes = 0) {
  return at(tensor * 4 * kGiB + bytes);
}
constexpr uint64_t kWorkspace = 100 * 4 * kGiB;

inline flydsl_aot_tensor bf16(Place tensor, const std::vector<int64_t> &sizes) {
  return flydsl_aot::tensor(place(tensor), FLYDSL_AOT_BF16, sizes);
}
inline flydsl_aot_tensor fp32(Place tensor, const std::vector<int64_t> &sizes) {
  return flydsl_aot::tensor(place(tensor), FLYDSL_AOT_FP32, sizes);
}
inline flydsl_aot_tensor lengths(int64_t count, uint64_t bytes = 0) {
  return flydsl_aot::tensor(place(kNumbers, bytes), FLYDSL_AOT_INT32, {count});
}

// bf16, B 2, Hq 6, Hkv 2, Sq 300, Sk 500, D 64, no mask, all of dq, dk, dv; ample workspace.
inline BackwardParams valid_backward() {
  auto params = flydsl_aot::attention_backward_params();
  params.scale = 0.125f;
  params.q = bf16(kQ, {2, 6, 300, 64});
  params.k = bf16(kK, {2, 2, 500, 64});
  params.v = bf16(kV, {2, 2, 500, 64});
  params.out = bf16(kOut, {2, 6, 300, 64});
  params.lse = fp32(kLse, {2, 6, 300});
  params.dout = bf16(kDout, {2, 6, 300, 64});
  params.dq = bf16(kDq, {2, 6, 300, 64});
  params.dk = bf16(kDk, {2, 2, 500, 64});
  params.dv = bf16(kDv, {2, 2, 500, 64});
  params.workspace = at(kWorkspace);
  params.workspace_bytes = kGiB;
  return params;
}

// Two sequences over 600 rows and 900 keys.
inline void pack_backward(BackwardParams &p) {
  p.q = bf16(kQ, {6, 600, 64});
  p.out = bf16(kOut, {6, 600, 64});
  p.dout = bf16(kDout, {6, 600, 64});
  p.dq = bf16(kDq, {6, 600, 64});
  p.lse = fp32(kLse, {6, 600});
  p.k = bf16(kK, {2, 900, 64});
  p.v = bf16(kV, {2, 900, 64});
  p.dk = bf16(kDk, {2, 900, 64});
  p.dv = bf16(kDv, {2, 900, 64});
  p.cu_seqlens_q = lengths(3);
  p.cu_seqlens_k = lengths(3, 64);
  p.max_seqlen_q = 400;
  p.max_seqlen_k = 500;
}

// All passes; plain kernels of D 64 and 128, one for all gradients of D 128. Names say dtype, dims, pass and kind.
inline archive::ArchiveSpec backward_spec() {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  spec.library_version = FLYDSL_AOT_VERSION;
  unsigned seed = 0;
#define FLYDSL_AOT_PASS(name, number) [[maybe_unused]] constexpr uint64_t k_##name = number;
  FLYDSL_AOT_ATTENTION_BACKWARD_PASSES(FLYDSL_AOT_PASS)
#undef FLYDSL_AOT_PASS
  const auto add = [&](const std::string &name, uint64_t key, uint32_t align_bytes, uint32_t rows,
                       uint32_t keys) {
    archive::KernelSpec kernel = fake_kernel("backward_" + name, key, ++seed);
    kernel.op = "attention_backward";
    kernel.kernarg_layout_id = FLYDSL_AOT_ATTENTION_BACKWARD_KERNARG_LAYOUT_ID;
    kernel.kernarg_bytes = FLYDSL_AOT_ATTENTION_BACKWARD_KERNARG_BYTES;
    kernel.tile[0] = rows;
    kernel.tile[1] = keys;
    spec.kernels.push_back(kernel);
    spec.selection.push_back(
        {kernel.op, key, {{kernel.name, align_bytes, 0, 1u << 30, 0, 1u << 30}}});
  };
  const auto key = flydsl_aot_attention_backward_key;
  add("sinks", key(0, 0, 0, 0, k_sinks, 0, 0), 1, 1, 0);
  const struct {
    uint64_t number;
    std::string name;
  } dtypes[] = {{FLYDSL_AOT_FP16, "fp16_"}, {FLYDSL_AOT_BF16, "bf16_"}};
  const std::pair<uint64_t, const char *> passes[] = {
      {k_keys, "_keys"}, {k_queries, "_queries"}, {k_bias, "_bias"}};
#define FLYDSL_AOT_CLASS(qk, v) {qk, v},
  const std::pair<uint64_t, uint64_t> classes[] = {
      FLYDSL_AOT_ATTENTION_BACKWARD_HEAD_DIM_CLASSES(FLYDSL_AOT_CLASS)};
#undef FLYDSL_AOT_CLASS
  for (const auto &dtype : dtypes) {
    add(dtype.name + "prepare", key(dtype.number, 0, 0, 0, k_prepare, 0, 0), 2, 128, 0);
    add(dtype.name + "convert", key(dtype.number, 0, 0, 0, k_convert, 0, 0), 2, 128, 0);
    for (const auto &[qk, v] : classes) {
      const std::string dims =
          dtype.name + "d" + std::to_string(qk) +
          (qk == v ? std::string() : std::string("x").append(std::to_string(v)));
      for (const auto &[number, name] : passes) {
        add(dims + name + "_general", key(dtype.number, qk, v, 0, number, 1, 0), 2, 64, 128);
        if (number != k_bias && (qk == 64 || qk == 128))
          add(dims + name + "_plain", key(dtype.number, qk, v, 0, number, 0, 1), 16, 64, 128);
      }
    }
    for (const uint64_t mask : {0, 1})
      add(dtype.name + "d128_fused_" + (mask ? "causal" : "none"),
          key(dtype.number, 128, 128, mask, k_fused, 0, 0), 16, 32, 256);
  }
  return spec;
}

class AttentionBackwardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = open_fake_hip(FAKE_HIP7);
    ASSERT_NE(fake_, nullptr);
    fake_->reset();
    write_bytes(archive_path_, build_or_die(backward_spec()));
    library_ = open(FLYDSL_AOT_DEVICE_HIP);
  }

  flydsl_aot::Library open(flydsl_aot_device_kind device, const char *force_kernel = nullptr) {
    auto options = flydsl_aot::open_options();
    options.device = device;
    options.force_kernel = force_kernel;
    if (device == FLYDSL_AOT_DEVICE_HIP) options.device_library = FAKE_HIP7;
    if (device == FLYDSL_AOT_DEVICE_NONE) options.arch = "gfx950";
    options.archive_path = archive_path_.c_str();
    flydsl_aot::Library library;
    const auto status = flydsl_aot::Library::open(options, &library);
    EXPECT_TRUE(status.ok()) << status.message();
    return library;
  }

  // The kernels that the call launches, in order, without "backward_" and "_symbol"; at most 8.
  std::vector<std::string> launched(const BackwardParams &params, void *stream = nullptr) {
    const int before = fake_->launches;
    const auto status = library_.attention_backward(params, stream);
    EXPECT_TRUE(status.ok()) << status.message();
    launches_.clear();
    std::vector<std::string> names;
    for (int number = before; number < fake_->launches; ++number) {
      launches_.push_back(fake_->recent[number % 8]);
      const std::string symbol = launches_.back().symbol;
      const size_t first = std::strlen("backward_");
      names.push_back(symbol.substr(first, symbol.size() - first - std::strlen("_symbol")));
    }
    return names;
  }
  // Of the call's launch `index`.
  BackwardKernarg kernarg(size_t index) const {
    BackwardKernarg result{};
    EXPECT_LT(index, launches_.size());
    EXPECT_EQ(launches_.at(index).kernarg_bytes, sizeof result);
    std::memcpy(&result, launches_.at(index).kernarg, sizeof result);
    return result;
  }
  uint64_t workspace_of(const BackwardParams &params) {
    flydsl_aot_query_result result;
    const auto status = library_.attention_backward_query(params, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    return result.workspace_bytes;
  }

  FakeHip *fake_ = nullptr;
  TempFolder folder_;
  std::string archive_path_ = folder_.file("flydsl_aot.gfx950.fda");
  flydsl_aot::Library library_;
  std::vector<FakeHip::Launch> launches_;
};

}  // namespace flydsl::test
