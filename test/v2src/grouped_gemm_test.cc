// grouped_gemm: what is refused, which kernel is chosen, and what it is told. On a pretend device with pretend code objects:
// launches are recorded, not computed.
#include <cstring>
#include <functional>
#include <tuple>

#include "flydsl_aot/flydsl_aot.hpp"
#include "flydsl_aot_generated/abi.h"
#include "flydsl_aot_generated/grouped_gemm_kernarg.h"
#include "test/src/archive/archive_fixture.h"
#include "test/v2src/one_kernel_fixture.h"

namespace flydsl::test {
namespace {

using Params = flydsl_aot_grouped_gemm_params;
using Kernarg = flydsl_aot_grouped_gemm_kernarg;

enum Place : uint64_t { kA = 1, kB, kD, kOffsets, kBias, kAScale, kBScale };
// Far apart.
void *at(Place tensor, uint64_t bytes = 0) {
  return reinterpret_cast<void *>((uint64_t{tensor} << 40) + bytes);
}
flydsl_aot_tensor bf16(Place tensor, const std::vector<int64_t> &sizes) {
  return flydsl_aot::tensor(at(tensor), FLYDSL_AOT_BF16, sizes);
}

// A layer, forward: 1000 rows, 4 groups, K 96, N 200; weights as (G, N, K).
Params forward() {
  Params params = flydsl_aot::grouped_gemm_params();
  params.a = bf16(kA, {1000, 96});
  params.b = bf16(kB, {4, 96, 200});
  params.b.strides[1] = 1;
  params.b.strides[2] = 96;
  params.d = bf16(kD, {1000, 200});
  params.offsets = flydsl_aot::tensor(at(kOffsets), FLYDSL_AOT_INT32, {4});
  return params;
}
// The same layer in MXFP8, K 256.
Params mx_forward(bool shuffled = false) {
  Params params = forward();
  params.a = flydsl_aot::tensor(at(kA), FLYDSL_AOT_E4M3, {1000, 256});
  params.b = flydsl_aot::tensor(at(kB), FLYDSL_AOT_E5M2, {4, 256, 200});
  params.b.strides[1] = 1;
  params.b.strides[2] = 256;
  params.scale_layout = shuffled ? FLYDSL_AOT_SCALES_SHUFFLED_32_8 : FLYDSL_AOT_SCALES_PLAIN;
  params.a_scale = flydsl_aot::tensor(at(kAScale), FLYDSL_AOT_E8M0, {shuffled ? 1024 : 1000, 8});
  params.b_scale = flydsl_aot::tensor(at(kBScale), FLYDSL_AOT_E8M0, {4, shuffled ? 224 : 200, 8});
  return params;
}
// Its weight's gradient.
Params weight_gradient() {
  Params params = forward();
  params.a = bf16(kA, {200, 1000});
  params.a.strides[0] = 1;
  params.a.strides[1] = 200;
  params.b = bf16(kB, {1000, 96});
  params.d = bf16(kD, {4, 200, 96});
  return params;
}

archive::ArchiveSpec spec_of_archive() {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  spec.library_version = FLYDSL_AOT_VERSION;
  unsigned seed = 0;
  const auto add = [&](const std::string &name, uint64_t key, uint32_t rows, uint32_t columns,
                       uint32_t resident, uint32_t align_bytes) {
    archive::KernelSpec kernel = fake_kernel("grouped_" + name, key, ++seed);
    kernel.op = "grouped_gemm";
    kernel.kernarg_layout_id = FLYDSL_AOT_GROUPED_GEMM_KERNARG_LAYOUT_ID;
    kernel.kernarg_bytes = FLYDSL_AOT_GROUPED_GEMM_KERNARG_BYTES;
    kernel.tile[0] = rows;
    kernel.tile[1] = columns;
    kernel.tile[2] = resident;
    spec.kernels.push_back(kernel);
    spec.selection.push_back(
        {kernel.op, key, {{kernel.name, align_bytes, 0, 1u << 30, 0, 1u << 30}}});
  };
  const auto key = flydsl_aot_grouped_gemm_key;
  add("general", key(FLYDSL_AOT_BF16, FLYDSL_AOT_BF16, 0, 0, 0), 128, 128, 2, 1);
  add("mx_general", key(FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2, 0, 0, 0), 128, 128, 2, 1);
  add("mx_few_rows", key(FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2, 4, 0, 0), 16, 16, 2, 16);
  for (const uint64_t shuffled : {0, 1})
    add(shuffled ? "mx_shuffled" : "mx_plain",
        key(FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2, 1, 0, shuffled), 256, 256, 1, 16);
#define FLYDSL_AOT_LAYOUTS(kk, kr, rr) \
  {                                    \
    {kk, "kk"}, {kr, "kr"}, {          \
      rr, "rr"                         \
    }                                  \
  }
  const std::pair<uint64_t, std::string> layouts[] =
      FLYDSL_AOT_GROUPED_GEMM_LAYOUTS(FLYDSL_AOT_LAYOUTS);
#undef FLYDSL_AOT_LAYOUTS
#define FLYDSL_AOT_TILE(number, rows, columns, resident, with, mx) \
  for (const auto &[layout, name] : layouts)                       \
    if (with >> layout & 1)                                        \
      add(name + "_" + #rows + "x" + #columns,                     \
          key(FLYDSL_AOT_BF16, FLYDSL_AOT_BF16, number, layout, 0), rows, columns, resident, 16);
  FLYDSL_AOT_GROUPED_GEMM_TILES(FLYDSL_AOT_TILE)
#undef FLYDSL_AOT_TILE
  return spec;
}

using GroupedGemmTestBase = OneKernelTest<Params, Kernarg, &flydsl_aot::Library::grouped_gemm,
                                          &flydsl_aot::Library::grouped_gemm_query>;
class GroupedGemmTest : public GroupedGemmTestBase {
 protected:
  archive::ArchiveSpec spec() const override { return spec_of_archive(); }
  std::string kernel_of(const Params &params) {
    return GroupedGemmTestBase::kernel_of(params, "grouped_");
  }
  void expect_refused(const std::function<void(Params &)> &change, flydsl_aot_status status,
                      const std::string &message) {
    GroupedGemmTestBase::expect_refused(forward(), change, status, message);
  }
};

TEST_F(GroupedGemmTest, RefusesWhatIsWrong) {
  expect_refused([](Params &p) { p.a.rank = 1; }, FLYDSL_AOT_INVALID_SHAPE, "a has rank 1");
  expect_refused([](Params &p) { p.b = {}; }, FLYDSL_AOT_INVALID_SHAPE, "b has rank 0");
  expect_refused([](Params &p) { p.d.rank = 3; }, FLYDSL_AOT_INVALID_SHAPE, "d has rank 3");
  expect_refused([](Params &p) { p.offsets = {}; }, FLYDSL_AOT_INVALID_SHAPE, "offsets is absent");
  expect_refused(
      [](Params &p) {
        p.a = bf16(kA, {4, 10, 96});
        p.d = bf16(kD, {4, 10, 200});
      },
      FLYDSL_AOT_INVALID_SHAPE, "must be absent");
  expect_refused([](Params &p) { p.a.sizes[1] = 95; }, FLYDSL_AOT_INVALID_SHAPE, "a has K = 95");
  expect_refused([](Params &p) { p.d.sizes[0] = 999; }, FLYDSL_AOT_INVALID_SHAPE, "d has M = 999");
  expect_refused([](Params &p) { p.d.sizes[1] = 201; }, FLYDSL_AOT_INVALID_SHAPE, "d has N = 201");
  expect_refused([](Params &p) { p.b.sizes[0] = 5; }, FLYDSL_AOT_INVALID_SHAPE, "b has G = 5");
  expect_refused([](Params &p) { p.a.sizes[0] = -1; }, FLYDSL_AOT_INVALID_SHAPE, "size -1");
  expect_refused(
      [](Params &p) {
        p.bias = bf16(kBias, {4, 201});
      },
      FLYDSL_AOT_INVALID_SHAPE, "bias has N = 201");
  expect_refused(
      [](Params &p) {
        p.bias = bf16(kBias, {3, 200});
      },
      FLYDSL_AOT_INVALID_SHAPE, "bias has G = 3");
  expect_refused(
      [](Params &p) {
        p.a = bf16(kA, {4, 50, 96});
        p.b = bf16(kB, {96, 1000});
        p.d = bf16(kD, {50, 1000});
        p.bias = bf16(kBias, {4, 1000});
      },
      FLYDSL_AOT_INVALID_SHAPE, "bias has rank 2");
  expect_refused([](Params &p) { p.a.dtype = FLYDSL_AOT_FP32; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
                 "a is fp32; supported: fp16, bf16, e4m3, e5m2");
  expect_refused([](Params &p) { p.a.dtype = 99; }, FLYDSL_AOT_INVALID_DTYPE, "number 99");
  expect_refused([](Params &p) { p.b.dtype = FLYDSL_AOT_FP16; }, FLYDSL_AOT_INVALID_DTYPE,
                 "b is fp16");
  expect_refused([](Params &p) { p.d.dtype = FLYDSL_AOT_E4M3; }, FLYDSL_AOT_INVALID_DTYPE,
                 "d is e4m3");
  expect_refused([](Params &p) { p.offsets.dtype = FLYDSL_AOT_FP32; }, FLYDSL_AOT_INVALID_DTYPE,
                 "offsets is fp32");
  expect_refused([](Params &p) { p.d.strides[0] = 199; }, FLYDSL_AOT_INVALID_STRIDE,
                 "d overlaps itself");
  expect_refused([](Params &p) { p.a.strides[0] = -96; }, FLYDSL_AOT_INVALID_STRIDE, "stride -96");
  expect_refused([](Params &p) { p.a.data = nullptr; }, FLYDSL_AOT_INVALID_POINTER,
                 "a has data NULL");
  expect_refused([](Params &p) { p.d.data = at(kD, 1); }, FLYDSL_AOT_INVALID_POINTER,
                 "not aligned to its element size");
  expect_refused([](Params &p) { p.d.data = p.a.data; }, FLYDSL_AOT_INVALID_POINTER,
                 "d overlaps a");
  expect_refused([](Params &p) { p.d.data = p.offsets.data; }, FLYDSL_AOT_INVALID_POINTER,
                 "d overlaps offsets");
  expect_refused([](Params &p) { p.a.sizes[0] = p.d.sizes[0] = (int64_t{1} << 30) + 1; },
                 FLYDSL_AOT_UNSUPPORTED_SIZE, "M = 1073741825");
  expect_refused(
      [](Params &p) {
        p.a.sizes[0] = p.d.sizes[0] = int64_t{1} << 30;
        p.b.sizes[2] = p.d.sizes[1] = 1000;
        p.d.strides[0] = 1000;
      },
      FLYDSL_AOT_UNSUPPORTED_SIZE, "must be below 2^31");
}

TEST_F(GroupedGemmTest, RefusesWrongScales) {
  expect_refused([](Params &p) { p.scale_layout = 1; }, FLYDSL_AOT_INVALID_ARGUMENT,
                 "scale_layout is 1; it must be 0: a is bf16");
  expect_refused(
      [](Params &p) {
        p.b_scale = bf16(kBScale, {4, 200, 3});
      },
      FLYDSL_AOT_INVALID_ARGUMENT, "b_scale has rank 3; it must be absent: a is bf16");
  const auto refused = [&](bool shuffled, const std::function<void(Params &)> &change,
                           flydsl_aot_status status, const std::string &message) {
    GroupedGemmTestBase::expect_refused(mx_forward(shuffled), change, status, message);
  };
  refused(
      false, [](Params &p) { p.scale_layout = 2; }, FLYDSL_AOT_INVALID_ARGUMENT,
      "scale_layout is 2");
  refused(
      false, [](Params &p) { p.a_scale = {}; }, FLYDSL_AOT_INVALID_SHAPE,
      "a_scale is absent (rank 0); a is e4m3");
  refused(
      false, [](Params &p) { p.b.dtype = FLYDSL_AOT_BF16; }, FLYDSL_AOT_INVALID_DTYPE,
      "b is bf16 (number 4); with an a of e4m3 it must be e4m3 or e5m2");
  refused(
      false, [](Params &p) { p.a.dtype = FLYDSL_AOT_E2M1X2; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
      "a is e2m1x2");
  refused(
      false, [](Params &p) { p.a_scale.dtype = FLYDSL_AOT_FP32; }, FLYDSL_AOT_INVALID_DTYPE,
      "a_scale is fp32");
  refused(
      false, [](Params &p) { p.a_scale.sizes[0] = 999; }, FLYDSL_AOT_INVALID_SHAPE,
      "a_scale is 999 x 8; a has 1000 rows and K = 256, which need 1000 x 8");
  refused(
      true, [](Params &p) { p.a_scale.sizes[0] = 1000; }, FLYDSL_AOT_INVALID_SHAPE,
      "need 1024 x 8 (shuffled");
  refused(
      false, [](Params &p) { p.b_scale.sizes[0] = 3; }, FLYDSL_AOT_INVALID_SHAPE,
      "b_scale has G = 3");
  refused(
      true, [](Params &p) { p.a_scale.strides[0] = 9; }, FLYDSL_AOT_INVALID_STRIDE,
      "a_scale has strides 9 and 1");
  refused(
      false, [](Params &p) { p.a.sizes[1] = p.b.sizes[1] = 250; }, FLYDSL_AOT_UNSUPPORTED_SIZE,
      "K = 250; with a of e4m3 it must be a multiple of 32");
  refused(
      false, [](Params &p) { p.d.data = p.b_scale.data; }, FLYDSL_AOT_INVALID_POINTER,
      "d overlaps b_scale");
  refused(
      false, [](Params &p) { p.a_scale.data = nullptr; }, FLYDSL_AOT_INVALID_POINTER,
      "a_scale has data NULL");
}

TEST_F(GroupedGemmTest, ChoosesMxKernels) {
  EXPECT_EQ(kernel_of(mx_forward()), "mx_plain");
  EXPECT_EQ(kernel_of(mx_forward(true)), "mx_shuffled");
  Params other = mx_forward();
  other.a_scale.data = at(kAScale, 2);  // not aligned
  EXPECT_EQ(kernel_of(other), "mx_general");
  other = mx_forward();
  other.a.strides[0] = 264;
  EXPECT_EQ(kernel_of(other), "mx_general");
  other = mx_forward();
  other.a_scale.strides[0] = 1;
  other.a_scale.strides[1] = 1000;
  EXPECT_EQ(kernel_of(other), "mx_general");
  // 128 of K with shuffled scales only.
  for (const bool shuffled : {false, true}) {
    other = mx_forward(shuffled);
    other.a.sizes[1] = other.b.sizes[1] = 128;
    if (!shuffled) other.a_scale.sizes[1] = other.b_scale.sizes[2] = 4;
    EXPECT_EQ(kernel_of(other), shuffled ? "mx_shuffled" : "mx_general");
  }
  other = mx_forward();
  other.a.sizes[0] = other.a_scale.sizes[0] = other.d.sizes[0] = 30;
  EXPECT_EQ(kernel_of(other), "mx_few_rows");
  // Groups along K.
  other = mx_forward();
  other.a = flydsl_aot::tensor(at(kA), FLYDSL_AOT_E4M3, {1000, 256});
  other.b = flydsl_aot::tensor(at(kB), FLYDSL_AOT_E5M2, {256, 200});
  other.b.strides[0] = 1;
  other.b.strides[1] = 256;
  other.b_scale = flydsl_aot::tensor(at(kBScale), FLYDSL_AOT_E8M0, {200, 8});
  other.d = bf16(kD, {4, 1000, 200});
  EXPECT_EQ(kernel_of(other), "mx_general");
}

TEST_F(GroupedGemmTest, TellsKernelsWhereScalesAre) {
  kernel_of(mx_forward());
  Kernarg args = kernarg();
  EXPECT_EQ(args.a_scale, at(kAScale));
  EXPECT_EQ(args.b_scale, at(kBScale));
  EXPECT_EQ(std::tuple(args.a_scale_stride_g, args.a_scale_stride_m, args.a_scale_stride_k),
            std::tuple(0, 8, 1));
  EXPECT_EQ(std::tuple(args.b_scale_stride_g, args.b_scale_stride_n, args.b_scale_stride_k),
            std::tuple(1600, 8, 1));
  EXPECT_EQ(args.scales_shuffled, 0u);
  kernel_of(mx_forward(true));
  args = kernarg();
  EXPECT_EQ(args.scales_shuffled, 1u);
  EXPECT_EQ(std::tuple(args.b_scale_stride_g, args.b_scale_stride_n, args.b_scale_stride_k),
            std::tuple(1792, 8, 1));
  kernel_of(forward());
  EXPECT_EQ(kernarg().a_scale, nullptr);
}

TEST_F(GroupedGemmTest, ChoosesByWhatIsContiguous) {
  EXPECT_EQ(kernel_of(forward()), "kk_128x128");
  Params other = forward();
  other.b = bf16(kB, {4, 96, 200});
  EXPECT_EQ(kernel_of(other), "kr_128x128");
  other.b.strides[1] = 208;
  EXPECT_EQ(kernel_of(other), "kr_128x128");
  other.b.strides[1] = 201;  // not aligned
  EXPECT_EQ(kernel_of(other), "general");
  other = forward();
  other.a.data = at(kA, 2);
  EXPECT_EQ(kernel_of(other), "general");
  // Rows that are contiguous begin anywhere where groups share them.
  other = forward();
  other.a.strides[0] = 1;
  other.a.strides[1] = 1000;
  EXPECT_EQ(kernel_of(other), "general");
  EXPECT_EQ(kernel_of(weight_gradient()), "rr_256x128");
  other = weight_gradient();
  other.a = bf16(kA, {200, 1000});  // K is
  EXPECT_EQ(kernel_of(other), "general");
}

// Large ones where there are enough of them, unless groups end in many empty rows.
TEST_F(GroupedGemmTest, ChoosesTilesBySizesOfGroups) {
  const auto kernel_of_groups = [&](int64_t rows, int64_t groups) {
    Params params = forward();
    params.a.sizes[0] = params.d.sizes[0] = rows;
    params.b.sizes[0] = params.offsets.sizes[0] = groups;
    params.b.sizes[2] = params.d.sizes[1] = 4096;
    params.b.strides[0] = 96 * 4096;
    params.d.strides[0] = 4096;
    return kernel_of(params);
  };
  EXPECT_EQ(kernel_of_groups(32768, 8), "kk_256x256");
  EXPECT_EQ(kernel_of_groups(32768, 1), "kk_256x256");
  EXPECT_EQ(kernel_of_groups(64 * 200, 200), "kk_128x128");
  EXPECT_EQ(kernel_of_groups(1024, 8), "kk_128x128");
  EXPECT_EQ(kernel_of_groups(8 * 300, 300), "kk_16x16");
  EXPECT_EQ(kernel_of_groups(16 * 300, 300), "kk_32x16");
  EXPECT_EQ(kernel_of_groups(17 * 300, 300), "kk_128x128");
  EXPECT_EQ(kernel_of_groups(100, 4), "kk_64x16");
  EXPECT_EQ(kernel_of_groups(33, 1), "kk_64x16");
  EXPECT_EQ(kernel_of_groups(5, 1000), "kk_16x16");
}

TEST_F(GroupedGemmTest, TellsKernelsWhereThingsAre) {
  Params params = forward();
  params.bias = flydsl_aot::tensor(at(kBias), FLYDSL_AOT_FP32, {4, 200});
  params.offsets.dtype = FLYDSL_AOT_INT64;
  kernel_of(params);
  Kernarg args = kernarg();
  EXPECT_EQ(args.a, params.a.data);
  EXPECT_EQ(args.d, params.d.data);
  EXPECT_EQ(args.offsets, params.offsets.data);
  EXPECT_EQ(std::tuple(args.a_stride_g, args.a_stride_m, args.a_stride_k), std::tuple(0, 96, 1));
  EXPECT_EQ(std::tuple(args.b_stride_g, args.b_stride_k, args.b_stride_n),
            std::tuple(19200, 1, 96));
  EXPECT_EQ(std::tuple(args.d_stride_g, args.d_stride_m, args.d_stride_n), std::tuple(0, 200, 1));
  EXPECT_EQ(std::tuple(args.bias_stride_g, args.bias_stride_n), std::tuple(200, 1));
  EXPECT_EQ(args.offsets_wide, 1u);
  EXPECT_EQ(args.axis, 1u);
  EXPECT_EQ(args.bias_dtype, static_cast<uint32_t>(FLYDSL_AOT_FP32));
  EXPECT_EQ(std::tuple(args.groups, args.m, args.n, args.k), std::tuple(4u, 1000, 200, 96));
  // No more work-groups than there may be tiles.
  EXPECT_EQ(args.workers, (8u + 4u) * 2u);
  EXPECT_EQ(fake_->last_launch.grid[0], args.workers);

  kernel_of(weight_gradient());
  args = kernarg();
  EXPECT_EQ(args.axis, 3u);
  EXPECT_EQ(std::tuple(args.d_stride_g, args.d_stride_m, args.d_stride_n),
            std::tuple(19200, 96, 1));
  EXPECT_EQ(std::tuple(args.groups, args.m, args.n, args.k), std::tuple(4u, 200, 96, 1000));
  EXPECT_EQ(args.bias, nullptr);
}

TEST_F(GroupedGemmTest, LaunchesNothingWithoutElements) {
  Params params = forward();
  params.a.sizes[0] = params.d.sizes[0] = 0;
  EXPECT_EQ(kernel_of(params), "");
  params = forward();
  params.b.sizes[0] = params.offsets.sizes[0] = 0;
  EXPECT_EQ(kernel_of(params), "");
  // With K = 0 there are elements.
  params = weight_gradient();
  params.a.sizes[1] = params.b.sizes[0] = 0;
  EXPECT_NE(kernel_of(params), "");
}

}  // namespace
}  // namespace flydsl::test
