// A pretend device (one_kernel_fixture.h) with an archive of gemm's general kernels and one of tiles, and a valid problem to start from.
#pragma once

#include "flydsl_aot_generated/abi.h"
#include "flydsl_aot_generated/gemm_kernarg.h"
#include "test/v2src/one_kernel_fixture.h"

namespace flydsl::test {

using GemmParams = flydsl_aot_gemm_params;
using GemmKernarg = flydsl_aot_gemm_kernarg;

// Of the tensors: far apart, aligned to 4096 bytes.
enum GemmPlace : uint64_t {
  kA = 1,
  kB,
  kC,
  kD,
  kResidual,
  kAux,
  kBiasM,
  kBiasN,
  kADescale,
  kBDescale,
  kDScale,
  kGemmWorkspace,
  kSum,
  kOtherSum
};
inline void *gemm_place(GemmPlace tensor, uint64_t bytes = 0) {
  return reinterpret_cast<void *>((uint64_t{tensor} << 40) + bytes);
}
inline flydsl_aot_tensor gemm_tensor(GemmPlace tensor, flydsl_aot_dtype dtype,
                                     const std::vector<int64_t> &sizes) {
  return flydsl_aot::tensor(gemm_place(tensor), dtype, sizes);
}

// bf16, M 300, N 200, K 100, all row-major; ample workspace.
inline GemmParams valid_gemm() {
  auto params = flydsl_aot::gemm_params();
  params.a = gemm_tensor(kA, FLYDSL_AOT_BF16, {300, 100});
  params.b = gemm_tensor(kB, FLYDSL_AOT_BF16, {100, 200});
  params.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {300, 200});
  params.workspace = gemm_place(kGemmWorkspace);
  params.workspace_bytes = uint64_t{1} << 32;
  return params;
}
// Everything that there is, of e4m3 operands and result.
inline GemmParams full_gemm() {
  GemmParams params = valid_gemm();
  params.a.dtype = params.b.dtype = params.d.dtype = FLYDSL_AOT_E4M3;
  params.beta = 0.5f;
  params.c = gemm_tensor(kC, FLYDSL_AOT_FP16, {300, 200});
  params.a_descale = gemm_tensor(kADescale, FLYDSL_AOT_FP32, {300});
  params.b_descale = gemm_tensor(kBDescale, FLYDSL_AOT_FP32, {1});
  params.d_scale = gemm_tensor(kDScale, FLYDSL_AOT_FP32, {1});
  params.epilogue.bias_m = gemm_tensor(kBiasM, FLYDSL_AOT_BF16, {300});
  params.epilogue.bias_n = gemm_tensor(kBiasN, FLYDSL_AOT_FP32, {200});
  params.epilogue.activation = FLYDSL_AOT_ACTIVATION_SILU;
  params.epilogue.residual = gemm_tensor(kResidual, FLYDSL_AOT_FP32, {300, 200});
  params.epilogue.aux = gemm_tensor(kAux, FLYDSL_AOT_BF16, {300, 200});
  return params;
}

inline archive::ArchiveSpec gemm_spec() {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  spec.library_version = FLYDSL_AOT_VERSION;
  unsigned seed = 0;
  const auto add = [&](const std::string &name, uint64_t key, uint32_t rows, uint32_t columns,
                       uint32_t groups = 0) {
    archive::KernelSpec kernel = fake_kernel("gemm_" + name, key, ++seed);
    kernel.op = "gemm";
    kernel.kernarg_layout_id = FLYDSL_AOT_GEMM_KERNARG_LAYOUT_ID;
    kernel.kernarg_bytes = FLYDSL_AOT_GEMM_KERNARG_BYTES;
    kernel.tile[0] = rows;
    kernel.tile[1] = columns;
    kernel.tile[2] = groups;
    spec.kernels.push_back(kernel);
    spec.selection.push_back({kernel.op, key, {{kernel.name, 1, 0, 1u << 30, 0, 1u << 30}}});
  };
  const std::pair<const char *, uint64_t> dtypes[] = {{"fp32", FLYDSL_AOT_FP32},
                                                      {"fp16", FLYDSL_AOT_FP16},
                                                      {"bf16", FLYDSL_AOT_BF16},
                                                      {"fp8", FLYDSL_AOT_E4M3}};
  for (const auto &[name, dtype] : dtypes)
    add(std::string(name) + "_general", flydsl_aot_gemm_key(dtype, dtype, 0, 0, 0), 128, 128);
  constexpr uint64_t kTile256 = 1, kContiguousK = 0;  // of keys.py
  add("tiles",
      flydsl_aot_gemm_key(FLYDSL_AOT_BF16, FLYDSL_AOT_BF16, kTile256, kContiguousK, 0), 256, 256,
      1);
  add("second_pass", flydsl_aot_gemm_key(0, 0, 0, 0, 1), 2048, 0);
  add("sums", flydsl_aot_gemm_key(0, 0, 0, 0, 2), 64, 0);
  return spec;
}

class GemmTest : public OneKernelTest<GemmParams, GemmKernarg, &flydsl_aot::Library::gemm,
                                      &flydsl_aot::Library::gemm_query> {
 protected:
  archive::ArchiveSpec spec() const override { return gemm_spec(); }

  // The kernels that the call launches, in order, without "gemm_" and "_symbol".
  std::vector<std::string> launched(const GemmParams &params) {
    const int before = fake_->launches;
    const auto status = library_.gemm(params, nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    launches_.clear();
    std::vector<std::string> names;
    for (int number = before; number < fake_->launches; ++number) {
      launches_.push_back(fake_->recent[number % 8]);
      const std::string symbol = launches_.back().symbol;
      names.push_back(symbol.substr(5, symbol.size() - 5 - std::strlen("_symbol")));
    }
    return names;
  }
  GemmKernarg kernarg(size_t index = 0) const {
    GemmKernarg result{};
    EXPECT_LT(index, launches_.size());
    EXPECT_EQ(launches_.at(index).kernarg_bytes, sizeof result);
    std::memcpy(&result, launches_.at(index).kernarg, sizeof result);
    return result;
  }
  uint64_t workspace_of(const GemmParams &params) {
    flydsl_aot_query_result result;
    const auto status = library_.gemm_query(params, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    return result.workspace_bytes;
  }

  std::vector<FakeHip::Launch> launches_;
};

}  // namespace flydsl::test
