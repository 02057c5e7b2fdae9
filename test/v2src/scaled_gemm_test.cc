// scaled_gemm: what is refused, which kernel is chosen, and what it is told. On a pretend device with pretend code objects:
// launches are recorded, not computed.
#include <cstring>
#include <functional>
#include <limits>
#include <tuple>

#include "flydsl_aot/flydsl_aot.hpp"
#include "flydsl_aot_generated/abi.h"
#include "flydsl_aot_generated/scaled_gemm_kernarg.h"
#include "test/src/archive/archive_fixture.h"
#include "test/v2src/one_kernel_fixture.h"

namespace flydsl::test {
namespace {

using Params = flydsl_aot_scaled_gemm_params;
using Kernarg = flydsl_aot_scaled_gemm_kernarg;

enum Place : uint64_t { kA = 1, kAScale, kB, kBScale, kBias, kD };
// Far apart.
void *at(Place tensor, uint64_t bytes = 0) {
  return reinterpret_cast<void *>((uint64_t{tensor} << 40) + bytes);
}
flydsl_aot_tensor tensor_at(Place tensor, flydsl_aot_dtype dtype,
                            const std::vector<int64_t> &sizes) {
  return flydsl_aot::tensor(at(tensor), dtype, sizes);
}

// A linear layer: M 300, N 200, K 512, the weight as (N, K).
Params mxfp8() {
  Params params = flydsl_aot::scaled_gemm_params();
  params.a = tensor_at(kA, FLYDSL_AOT_E4M3, {300, 512});
  params.a_scale = tensor_at(kAScale, FLYDSL_AOT_E8M0, {300, 16});
  params.b = flydsl_aot::tensor(at(kB), FLYDSL_AOT_E4M3, {512, 200}, {1, 512});
  params.b_scale = tensor_at(kBScale, FLYDSL_AOT_E8M0, {200, 16});
  params.d = tensor_at(kD, FLYDSL_AOT_BF16, {300, 200});
  return params;
}
Params mxfp4() {
  Params params = mxfp8();
  params.a.dtype = params.b.dtype = FLYDSL_AOT_E2M1X2;
  params.a.strides[0] = params.b.strides[1] = 256;
  return params;
}
Params shuffled(Params params) {
  params.scale_layout = FLYDSL_AOT_SCALES_SHUFFLED_32_8;
  params.a_scale = tensor_at(kAScale, FLYDSL_AOT_E8M0, {320, 16});
  params.b_scale = tensor_at(kBScale, FLYDSL_AOT_E8M0, {224, 16});
  return params;
}
// Of 3 batches, with one B and one bias for all of them.
Params batched() {
  Params params = mxfp8();
  params.a = tensor_at(kA, FLYDSL_AOT_E4M3, {3, 300, 512});
  params.a_scale = tensor_at(kAScale, FLYDSL_AOT_E8M0, {3, 300, 16});
  params.bias = tensor_at(kBias, FLYDSL_AOT_FP32, {200});
  params.d = tensor_at(kD, FLYDSL_AOT_BF16, {3, 300, 200});
  return params;
}
void set_k(Params *params, int64_t k) {
  params->a.sizes[1] = params->a.strides[0] = k;
  params->b.sizes[0] = params->b.strides[1] = k;
  for (flydsl_aot_tensor *scale : {&params->a_scale, &params->b_scale})
    scale->sizes[1] = scale->strides[0] = k / 32;
}

archive::ArchiveSpec spec_of_archive() {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  spec.library_version = FLYDSL_AOT_VERSION;
  unsigned seed = 0;
  const auto add = [&](const std::string &name, uint64_t key, uint32_t rows, uint32_t columns,
                       uint32_t resident, uint32_t align_bytes) {
    archive::KernelSpec kernel = fake_kernel("scaled_" + name, key, ++seed);
    kernel.op = "scaled_gemm";
    kernel.kernarg_layout_id = FLYDSL_AOT_SCALED_GEMM_KERNARG_LAYOUT_ID;
    kernel.kernarg_bytes = FLYDSL_AOT_SCALED_GEMM_KERNARG_BYTES;
    kernel.tile[0] = rows;
    kernel.tile[1] = columns;
    kernel.tile[2] = resident;
    spec.kernels.push_back(kernel);
    spec.selection.push_back(
        {kernel.op, key, {{kernel.name, align_bytes, 0, 1u << 30, 0, 1u << 30}}});
  };
  const std::tuple<const char *, uint64_t, uint64_t> pairs[] = {
      {"e4m3", FLYDSL_AOT_E4M3, FLYDSL_AOT_E4M3},
      {"e4m3_e5m2", FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2},
      {"e5m2_e4m3", FLYDSL_AOT_E5M2, FLYDSL_AOT_E4M3},
      {"e2m1", FLYDSL_AOT_E2M1X2, FLYDSL_AOT_E2M1X2}};
  const auto key = flydsl_aot_scaled_gemm_key;
  for (const auto &[name, a, b] : pairs) {
    add(std::string(name) + "_general", key(a, b, 0, 0, 0), 128, 128, 0, 1);
    add(std::string(name) + "_plain", key(a, b, 1, 0, 0), 256, 256, 1, 16);
    add(std::string(name) + "_shuffled", key(a, b, 1, 1, 0), 256, 256, 1, 16);
    if (a != b || a == FLYDSL_AOT_E5M2) continue;
    for (uint32_t number = 2; number <= 4; ++number) {
      const uint32_t rows = 4u << number;
      const std::string few = std::string(name) + "_m" + std::to_string(rows);
      add(few, key(a, b, number, 0, 0), rows, 16, 0, 16);
      add(few + "_shuffled", key(a, b, number, 1, 0), rows, 16, 0, 16);
    }
  }
  add("second_pass", key(0, 0, 0, 0, 1), 2048, 0, 0, 1);
  return spec;
}

using ScaledGemmTestBase = OneKernelTest<Params, Kernarg, &flydsl_aot::Library::scaled_gemm,
                                         &flydsl_aot::Library::scaled_gemm_query>;
class ScaledGemmTest : public ScaledGemmTestBase {
 protected:
  archive::ArchiveSpec spec() const override { return spec_of_archive(); }
  std::string kernel_of(const Params &params) {
    return ScaledGemmTestBase::kernel_of(params, "scaled_");
  }
};

TEST_F(ScaledGemmTest, RefusesWrongShapes) {
  const auto refused = [&](const std::function<void(Params &)> &change, const char *message) {
    expect_refused(mxfp8(), change, FLYDSL_AOT_INVALID_SHAPE, message);
  };
  refused([](Params &p) { p.a.rank = 1; }, "a has rank 1; expected 2 or, batched, 3");
  refused([](Params &p) { p.b.rank = 4; }, "b has rank 4");
  refused([](Params &p) { p.a.rank = -1; }, "a has rank -1");
  refused([](Params &p) { p.d.rank = 3; }, "d has ");
  refused([](Params &p) { p.a.sizes[0] = -1; }, "a has size -1 on axis 0 (M)");
  refused([](Params &p) { p.a.sizes[1] = 480; }, "a has K = 480");
  refused([](Params &p) { p.d.sizes[0] = 299; }, "d has M = 299");
  refused([](Params &p) { p.d.sizes[1] = 201; }, "d has N = 201");
  refused([](Params &p) { p.a_scale.rank = 3; }, "a_scale has rank 3; it must be that of a, 2");
  refused([](Params &p) { p.b_scale.rank = 1; }, "b_scale has rank 1; it must be that of b, 2");
  refused([](Params &p) { p.a_scale.sizes[0] = 299; }, "a_scale is 299 x 16");
  refused([](Params &p) { p.a_scale.sizes[1] = 512; }, "a_scale is 300 x 512");
  refused([](Params &p) { p.b_scale.sizes[0] = -200; }, "b_scale has size -200");
  refused([](Params &p) { std::swap(p.b_scale.sizes[0], p.b_scale.sizes[1]); },
          "b_scale is 16 x 200");
  refused([](Params &p) { p.scale_layout = FLYDSL_AOT_SCALES_SHUFFLED_32_8; },
          "need 320 x 16 (shuffled, padded to 32 rows and 8 columns)");
  refused([](Params &p) { p.bias = tensor_at(kBias, FLYDSL_AOT_FP32, {201}); }, "bias has N = 201");
  refused(
      [](Params &p) {
        p.bias = tensor_at(kBias, FLYDSL_AOT_FP32, {1, 200});
      },
      "bias has rank 2; expected 1");
  expect_refused(
      batched(), [](Params &p) { p.d.rank = 2; }, FLYDSL_AOT_INVALID_SHAPE, "d has ");
  expect_refused(
      batched(), [](Params &p) { p.d.sizes[0] = 4; }, FLYDSL_AOT_INVALID_SHAPE, "d has batch = 4");
  expect_refused(
      batched(), [](Params &p) { p.a_scale.sizes[0] = 1; }, FLYDSL_AOT_INVALID_SHAPE,
      "a_scale has batch = 1");
  expect_refused(
      batched(),
      [](Params &p) {
        p.bias = tensor_at(kBias, FLYDSL_AOT_FP32, {2, 200});
      },
      FLYDSL_AOT_INVALID_SHAPE, "bias has batch = 2");
}

TEST_F(ScaledGemmTest, RefusesWrongTypes) {
  const auto refused = [&](const std::function<void(Params &)> &change, flydsl_aot_status status,
                           const char *message) {
    expect_refused(mxfp8(), change, status, message);
  };
  refused([](Params &p) { p.a.dtype = FLYDSL_AOT_BF16; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "a is bf16; supported: e4m3, e5m2, e2m1x2");
  refused([](Params &p) { p.b.dtype = FLYDSL_AOT_E4M3_FNUZ; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "b is e4m3");
  refused([](Params &p) { p.a.dtype = 99; }, FLYDSL_AOT_INVALID_DTYPE, "number 99");
  refused([](Params &p) { p.b.dtype = FLYDSL_AOT_E2M1X2; }, FLYDSL_AOT_INVALID_DTYPE,
          "a is e4m3 and b e2m1x2; e2m1x2 goes with e2m1x2 only");
  refused([](Params &p) { p.a_scale.dtype = FLYDSL_AOT_FP32; }, FLYDSL_AOT_INVALID_DTYPE,
          "a_scale is fp32");
  refused([](Params &p) { p.b_scale.dtype = FLYDSL_AOT_BOOL; }, FLYDSL_AOT_INVALID_DTYPE,
          "it must be e8m0");
  refused([](Params &p) { p.b_scale.dtype = -3; }, FLYDSL_AOT_INVALID_DTYPE, "b_scale is ");
  refused([](Params &p) { p.d.dtype = FLYDSL_AOT_E4M3; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "d is e4m3; supported: fp32, fp16, bf16");
  refused([](Params &p) { p.d.dtype = FLYDSL_AOT_FP64; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "d is fp64");
  refused([](Params &p) { p.bias = tensor_at(kBias, FLYDSL_AOT_INT32, {200}); },
          FLYDSL_AOT_UNSUPPORTED_DTYPE, "bias is int32");
  refused([](Params &p) { p.scale_layout = 2; }, FLYDSL_AOT_INVALID_ARGUMENT,
          "scale_layout is 2; it must be 0 (plain) or 1 (shuffled_32_8)");
  refused([](Params &p) { p.scale_layout = -1; }, FLYDSL_AOT_INVALID_ARGUMENT,
          "scale_layout is -1");
  for (const auto member : {&Params::a, &Params::a_scale, &Params::b, &Params::b_scale, &Params::d})
    refused([&](Params &p) { p.*member = {}; }, FLYDSL_AOT_INVALID_SHAPE,
            "a, a_scale, b, b_scale and d");
}

TEST_F(ScaledGemmTest, RefusesWrongMemory) {
  const auto refused = [&](const Params &params, const std::function<void(Params &)> &change,
                           flydsl_aot_status status, const char *message) {
    expect_refused(params, change, status, message);
  };
  refused(
      mxfp8(), [](Params &p) { p.d.strides[0] = 199; }, FLYDSL_AOT_INVALID_STRIDE,
      "d overlaps itself");
  refused(
      mxfp8(), [](Params &p) { p.d.strides[1] = 0; }, FLYDSL_AOT_INVALID_STRIDE,
      "d overlaps itself");
  refused(
      mxfp8(), [](Params &p) { p.a.strides[0] = -512; }, FLYDSL_AOT_INVALID_STRIDE, "stride -512");
  refused(
      mxfp8(), [](Params &p) { p.b.strides[1] = std::numeric_limits<int64_t>::max() / 2; },
      FLYDSL_AOT_INVALID_STRIDE, "do not fit 63 bits");
  refused(
      shuffled(mxfp8()), [](Params &p) { p.a_scale.strides[0] = 32; }, FLYDSL_AOT_INVALID_STRIDE,
      "a_scale has strides 32 and 1 on its last axes; shuffled scales are dense: 16 and 1");
  refused(
      shuffled(mxfp8()), [](Params &p) { p.b_scale.strides[1] = 2; }, FLYDSL_AOT_INVALID_STRIDE,
      "b_scale has strides 16 and 2");
  // K is what is packed, in B too.
  refused(
      mxfp4(), [](Params &p) { std::swap(p.a.strides[0], p.a.strides[1]); },
      FLYDSL_AOT_INVALID_STRIDE, "a has stride 256 on axis 1 (K)");
  refused(
      mxfp4(), [](Params &p) { std::swap(p.b.strides[0], p.b.strides[1]); },
      FLYDSL_AOT_INVALID_STRIDE, "b has stride 256 on axis 0 (K)");
  for (const auto member : {&Params::a, &Params::a_scale, &Params::b, &Params::b_scale, &Params::d})
    refused(
        mxfp8(), [&](Params &p) { (p.*member).data = nullptr; }, FLYDSL_AOT_INVALID_POINTER,
        "has data NULL");
  refused(
      mxfp8(), [](Params &p) { p.d.data = at(kD, 1); }, FLYDSL_AOT_INVALID_POINTER,
      "d has data 0x60000000001, not aligned to its element size of 2 bytes");
  for (const auto &[member, message] : {std::pair(&Params::a, "d overlaps a:"),
                                        {&Params::a_scale, "d overlaps a_scale:"},
                                        {&Params::b, "d overlaps b:"},
                                        {&Params::b_scale, "d overlaps b_scale:"},
                                        {&Params::bias, "d overlaps bias:"}}) {
    Params params = mxfp8();
    params.bias = tensor_at(kBias, FLYDSL_AOT_BF16, {200});
    refused(
        params, [&, at = member](Params &p) { p.d.data = (p.*at).data; },
        FLYDSL_AOT_INVALID_POINTER, message);
  }
  // Two elements of a share a byte: its last one is byte 300 * 256 - 1.
  refused(
      mxfp4(), [](Params &p) { p.d.data = at(kA, 300 * 256 - 2); }, FLYDSL_AOT_INVALID_POINTER,
      "d overlaps a:");
  Params after = mxfp4();
  after.d.data = at(kA, 300 * 256);
  EXPECT_EQ(kernel_of(after), "e2m1_plain");
}

TEST_F(ScaledGemmTest, RefusesSizesPastItsLimits) {
  const auto refused = [&](const Params &params, const std::function<void(Params &)> &change,
                           const char *message) {
    expect_refused(params, change, FLYDSL_AOT_UNSUPPORTED_SIZE, message);
  };
  for (const int64_t k : {16, 496, 500}) {
    refused(
        mxfp8(), [&](Params &p) { set_k(&p, k); }, "it must be a multiple of 32");
  }
  constexpr int64_t kMost = int64_t{1} << 30;
  refused(
      mxfp8(), [](Params &p) { set_k(&p, kMost + 32); }, "K = 1073741856; at most 1073741824");
  for (const int64_t m : {kMost + 1, std::numeric_limits<int64_t>::max()}) {
    const auto rows = [&](Params &p) { p.a.sizes[0] = p.d.sizes[0] = p.a_scale.sizes[0] = m; };
    const std::string message = "M = " + std::to_string(m) + "; at most 1073741824";
    refused(mxfp8(), rows, message.c_str());
    refused(shuffled(mxfp8()), rows, message.c_str());
    const auto columns = [&](Params &p) { p.b.sizes[1] = p.d.sizes[1] = p.b_scale.sizes[0] = m; };
    refused(mxfp8(), columns, ("N" + message.substr(1)).c_str());
    refused(shuffled(mxfp8()), columns, ("N" + message.substr(1)).c_str());
    const auto batches = [&](Params &p) { p.a.sizes[0] = p.d.sizes[0] = p.a_scale.sizes[0] = m; };
    refused(batched(), batches, ("batch" + message.substr(1)).c_str());
  }
  refused(
      mxfp8(),
      [](Params &p) {
        p.a.sizes[0] = p.d.sizes[0] = p.a_scale.sizes[0] = kMost;
        p.b.sizes[1] = p.d.sizes[1] = p.b_scale.sizes[0] = p.d.strides[0] = 128 * 256;
      },
      "2^31");
}

TEST_F(ScaledGemmTest, ChoosesByTypeAndLayout) {
  EXPECT_EQ(kernel_of(mxfp8()), "e4m3_plain");
  EXPECT_EQ(kernel_of(shuffled(mxfp8())), "e4m3_shuffled");
  EXPECT_EQ(kernel_of(mxfp4()), "e2m1_plain");
  EXPECT_EQ(kernel_of(shuffled(mxfp4())), "e2m1_shuffled");
  EXPECT_EQ(kernel_of(batched()), "e4m3_plain");
  Params mixed = mxfp8();
  mixed.b.dtype = FLYDSL_AOT_E5M2;
  EXPECT_EQ(kernel_of(mixed), "e4m3_e5m2_plain");
  // A D with contiguous columns is computed as that of B^T A^T.
  mixed.d.strides[0] = 1;
  mixed.d.strides[1] = 300;
  EXPECT_EQ(kernel_of(mixed), "e5m2_e4m3_plain");
  // Whatever is not there is no reason to fail in another way than by saying so.
  mixed.a.dtype = FLYDSL_AOT_E5M2;
  flydsl_aot_query_result result;
  EXPECT_EQ(library_.scaled_gemm_query(mixed, &result).code(), FLYDSL_AOT_NO_KERNEL);
}

TEST_F(ScaledGemmTest, TakesTheGeneralKernelWhereTheFastOnesDoNotServe) {
  const auto kernel_with = [&](Params params, const std::function<void(Params &)> &change) {
    change(params);
    return kernel_of(params);
  };
  const auto of_k = [&](Params params, int64_t k, int64_t row_bytes) {
    set_k(&params, k);
    params.a.strides[0] = params.b.strides[1] = row_bytes;
    return kernel_of(params);
  };
  EXPECT_EQ(of_k(mxfp8(), 416, 416), "e4m3_general");
  EXPECT_EQ(of_k(mxfp8(), 384, 384), "e4m3_general");
  EXPECT_EQ(of_k(mxfp8(), 256, 256), "e4m3_plain");
  EXPECT_EQ(of_k(mxfp4(), 384, 192), "e2m1_general");
  EXPECT_EQ(of_k(mxfp4(), 256, 128), "e2m1_plain");
  EXPECT_EQ(of_k(mxfp8(), 32, 32), "e4m3_general");
  Params slabs = shuffled(mxfp8());
  set_k(&slabs, 384);
  for (flydsl_aot_tensor *scale : {&slabs.a_scale, &slabs.b_scale})
    scale->sizes[1] = scale->strides[0] = 16;
  EXPECT_EQ(kernel_of(slabs), "e4m3_shuffled");
  slabs.a.dtype = slabs.b.dtype = FLYDSL_AOT_E2M1X2;
  slabs.a.strides[0] = slabs.b.strides[1] = 192;
  EXPECT_EQ(kernel_of(slabs), "e2m1_general");

  EXPECT_EQ(kernel_with(mxfp8(),
                        [](Params &p) {
                          p.b = tensor_at(kB, FLYDSL_AOT_E4M3, {512, 200});
                        }),
            "e4m3_general");
  EXPECT_EQ(kernel_with(mxfp8(), [](Params &p) { p.a.data = at(kA, 8); }), "e4m3_general");
  EXPECT_EQ(kernel_with(mxfp8(), [](Params &p) { p.a.strides[0] = 520; }), "e4m3_general");
  EXPECT_EQ(kernel_with(mxfp8(), [](Params &p) { p.a.strides[0] = 528; }), "e4m3_plain");
  EXPECT_EQ(kernel_with(mxfp8(), [](Params &p) { p.a.strides[0] = 0; }), "e4m3_plain");
  EXPECT_EQ(kernel_with(mxfp8(), [](Params &p) { p.a.strides[0] = int64_t{1} << 22; }),
            "e4m3_general");
  EXPECT_EQ(kernel_with(mxfp8(), [](Params &p) { p.a_scale.data = at(kAScale, 4); }), "e4m3_plain");
  EXPECT_EQ(kernel_with(mxfp8(), [](Params &p) { p.a_scale.data = at(kAScale, 2); }),
            "e4m3_general");
  EXPECT_EQ(kernel_with(mxfp8(), [](Params &p) { p.b_scale.strides[0] = 17; }), "e4m3_general");
  EXPECT_EQ(kernel_with(mxfp8(),
                        [](Params &p) {
                          p.a_scale.strides[0] = 1;
                          p.a_scale.strides[1] = 300;
                        }),
            "e4m3_general");
  EXPECT_EQ(kernel_with(mxfp8(),
                        [](Params &p) { p.a.sizes[0] = p.d.sizes[0] = p.a_scale.sizes[0] = 64; }),
            "e4m3_m16");
  // What d and the bias look like is nothing to it.
  EXPECT_EQ(kernel_with(mxfp8(),
                        [](Params &p) {
                          p.d.data = at(kD, 2);
                          p.d.strides[0] = 601;
                          p.d.strides[1] = 3;
                          p.bias = flydsl_aot::tensor(at(kBias, 4), FLYDSL_AOT_FP32, {200}, {0});
                        }),
            "e4m3_plain");
}

TEST_F(ScaledGemmTest, TellsKernelsWhereThingsAre) {
  Params params = batched();
  EXPECT_EQ(kernel_of(params), "e4m3_plain");
  Kernarg args = kernarg();
  EXPECT_EQ(args.a, params.a.data);
  EXPECT_EQ(args.b, params.b.data);
  EXPECT_EQ(args.a_scale, params.a_scale.data);
  EXPECT_EQ(args.b_scale, params.b_scale.data);
  EXPECT_EQ(args.bias, params.bias.data);
  EXPECT_EQ(args.d, params.d.data);
  EXPECT_EQ(std::tuple(args.a_stride_b, args.a_stride_m, args.a_stride_k),
            std::tuple(300 * 512, 512, 1));
  EXPECT_EQ(std::tuple(args.b_stride_b, args.b_stride_n, args.b_stride_k), std::tuple(0, 512, 1));
  EXPECT_EQ(std::tuple(args.a_scale_stride_b, args.a_scale_stride_m, args.a_scale_stride_k),
            std::tuple(4800, 16, 1));
  EXPECT_EQ(std::tuple(args.b_scale_stride_b, args.b_scale_stride_n, args.b_scale_stride_k),
            std::tuple(0, 16, 1));
  EXPECT_EQ(std::tuple(args.bias_stride_b, args.bias_stride_m, args.bias_stride_n),
            std::tuple(0, 0, 1));
  EXPECT_EQ(std::tuple(args.d_stride_b, args.d_stride_m, args.d_stride_n),
            std::tuple(60000, 200, 1));
  EXPECT_EQ(std::tuple(args.d_dtype, args.bias_dtype, args.scales_shuffled),
            std::tuple(uint32_t{FLYDSL_AOT_BF16}, uint32_t{FLYDSL_AOT_FP32}, 0u));
  EXPECT_EQ(std::tuple(args.m, args.n, args.k, args.batches), std::tuple(300, 200, 512, 3u));
  EXPECT_EQ(std::tuple(args.row_tiles, args.column_tiles, args.tiles), std::tuple(2u, 1u, 6u));
  // No more work-groups than tiles.
  EXPECT_EQ(args.grid_x, 6u);
  EXPECT_EQ(fake_->last_launch.grid[0], 6u);

  // With D's columns contiguous, A and B, M and N change places.
  params = shuffled(mxfp4());
  params.bias = tensor_at(kBias, FLYDSL_AOT_FP16, {200});
  params.d = flydsl_aot::tensor(at(kD), FLYDSL_AOT_FP32, {300, 200}, {1, 304});
  EXPECT_EQ(kernel_of(params), "e2m1_m16_shuffled");
  args = kernarg();
  EXPECT_EQ(args.a, params.b.data);
  EXPECT_EQ(args.b, params.a.data);
  EXPECT_EQ(args.a_scale, params.b_scale.data);
  EXPECT_EQ(args.b_scale, params.a_scale.data);
  EXPECT_EQ(std::tuple(args.m, args.n), std::tuple(200, 300));
  EXPECT_EQ(std::tuple(args.a_stride_m, args.b_stride_n), std::tuple(256, 256));
  EXPECT_EQ(std::tuple(args.a_scale_stride_m, args.b_scale_stride_n), std::tuple(16, 16));
  EXPECT_EQ(std::tuple(args.d_stride_m, args.d_stride_n), std::tuple(304, 1));
  EXPECT_EQ(std::tuple(args.bias_stride_m, args.bias_stride_n), std::tuple(1, 0));
  EXPECT_EQ(args.scales_shuffled, 1u);
}

// MXFP8 with few rows: M, N, K.
Params few_rows(int64_t m, int64_t n, int64_t k) {
  Params params = mxfp8();
  params.a = tensor_at(kA, FLYDSL_AOT_E4M3, {m, k});
  params.a_scale = tensor_at(kAScale, FLYDSL_AOT_E8M0, {m, k / 32});
  params.b = flydsl_aot::tensor(at(kB), FLYDSL_AOT_E4M3, {k, n}, {1, k});
  params.b_scale = tensor_at(kBScale, FLYDSL_AOT_E8M0, {n, k / 32});
  params.d = tensor_at(kD, FLYDSL_AOT_BF16, {m, n});
  return params;
}

TEST_F(ScaledGemmTest, ChoosesTilesForFewRows) {
  EXPECT_EQ(kernel_of(few_rows(1, 28672, 4096)), "e4m3_m16");
  EXPECT_EQ(kernel_of(few_rows(16, 28672, 4096)), "e4m3_m16");
  EXPECT_EQ(kernel_of(few_rows(17, 28672, 4096)), "e4m3_m32");
  EXPECT_EQ(kernel_of(few_rows(64, 8192, 8192)), "e4m3_m64");
  EXPECT_EQ(kernel_of(few_rows(256, 4096, 7168)), "e4m3_m64");
  EXPECT_EQ(kernel_of(few_rows(257, 4096, 7168)), "e4m3_plain");
  EXPECT_EQ(kernel_of(few_rows(16, 4096, 4096 + 96)), "e4m3_general");
  Params params = few_rows(16, 4096, 4096);
  params.b.data = at(kB, 8);
  EXPECT_EQ(kernel_of(params), "e4m3_general");
  // No such kernel of two formats.
  params = few_rows(16, 4096, 4096);
  params.b.dtype = FLYDSL_AOT_E5M2;
  EXPECT_EQ(kernel_of(params), "e4m3_e5m2_general");
  EXPECT_EQ(kernel_of(few_rows(20, 40, 640)), "e4m3_m16");
  const Kernarg args = kernarg();
  EXPECT_EQ(std::tuple(args.row_tiles, args.column_tiles, args.tiles), std::tuple(2u, 3u, 6u));
  EXPECT_EQ(std::tuple(args.splits, args.split_k), std::tuple(1u, 640));
}

TEST_F(ScaledGemmTest, AddsPartsOfKInASecondPass) {
  Params params = few_rows(16, 512, 65536);
  flydsl_aot_query_result result;
  ASSERT_TRUE(library_.scaled_gemm_query(params, &result).ok());
  const uint64_t part = uint64_t{16} * 512 * sizeof(float);
  ASSERT_GT(result.workspace_bytes, part);
  EXPECT_EQ(result.workspace_bytes % part, 0u);
  const auto refused = [&](void *workspace, uint64_t bytes, const char *message) {
    expect_refused(
        params,
        [&](Params &p) {
          p.workspace = workspace;
          p.workspace_bytes = bytes;
        },
        FLYDSL_AOT_INVALID_WORKSPACE, message);
  };
  const auto memory = [](uint64_t bytes) { return reinterpret_cast<void *>((1ull << 50) + bytes); };
  refused(nullptr, result.workspace_bytes, "workspace is NULL");
  refused(memory(0), result.workspace_bytes - 1, "see flydsl_aot_scaled_gemm_query");
  refused(memory(8), result.workspace_bytes, "it must be 16-byte aligned");
  params.workspace = memory(0);
  params.workspace_bytes = result.workspace_bytes;
  ASSERT_TRUE(library_.scaled_gemm(params, nullptr).ok());
  const Kernarg args = kernarg();  // of the second pass
  EXPECT_EQ(args.partials, params.workspace);
  EXPECT_EQ(uint64_t{args.splits} * part, result.workspace_bytes);
  EXPECT_EQ(args.split_k % 1024, 0);
  EXPECT_LT((args.splits - 1) * int64_t{args.split_k}, 65536);
  EXPECT_GE(args.splits * int64_t{args.split_k}, 65536);
  EXPECT_EQ(args.tiles, 16u * 512 / 8);
}

TEST_F(ScaledGemmTest, LaunchesNothingWithoutElements) {
  Params params = mxfp8();
  params.a.sizes[0] = params.d.sizes[0] = params.a_scale.sizes[0] = 0;
  params.a.data = params.a_scale.data = params.d.data = nullptr;
  EXPECT_EQ(kernel_of(params), "");
  params = shuffled(mxfp4());
  params.b.sizes[1] = params.d.sizes[1] = params.b_scale.sizes[0] = 0;
  params.b.strides[0] = 77;  // nothing is packed
  EXPECT_NE(library_.scaled_gemm(params, nullptr).code(), FLYDSL_AOT_DEVICE_ERROR);
  params.b.strides[0] = 1;
  EXPECT_EQ(kernel_of(params), "");
  params = batched();
  params.a.sizes[0] = params.d.sizes[0] = params.a_scale.sizes[0] = 0;
  EXPECT_EQ(kernel_of(params), "");
}

// pytorch/pytorch#192497, NVIDIA/cutlass#1593: with K = 0 there are elements, of which none is read from a or b, whatever their strides.
TEST_F(ScaledGemmTest, pytorch_192497_elements_without_k) {
  for (const bool fp4 : {false, true}) {
    for (const int64_t stride : {0, 1, 7}) {
      Params params = fp4 ? mxfp4() : mxfp8();
      set_k(&params, 0);
      params.a.strides[0] = params.b.strides[1] = stride;
      params.a.data = params.b.data = params.a_scale.data = params.b_scale.data = nullptr;
      EXPECT_EQ(kernel_of(params), fp4 ? "e2m1_general" : "e4m3_general");
      EXPECT_EQ(kernarg().k, 0);
    }
  }
}

}  // namespace
}  // namespace flydsl::test
