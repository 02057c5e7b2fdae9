// mx_quantise: what is refused, which kernel is chosen, and what it is told. On a pretend device with pretend code objects:
// launches are recorded, not computed.
#include <functional>
#include <limits>
#include <tuple>

#include "flydsl_aot/flydsl_aot.hpp"
#include "flydsl_aot_generated/abi.h"
#include "flydsl_aot_generated/mx_quantise_kernarg.h"
#include "test/src/archive/archive_fixture.h"
#include "test/v2src/one_kernel_fixture.h"

namespace flydsl::test {
namespace {

using Params = flydsl_aot_mx_quantise_params;
using Kernarg = flydsl_aot_mx_quantise_kernarg;

enum Place : uint64_t { kX = 1, kOut, kScale };
// Far apart.
void *at(Place tensor, uint64_t bytes = 0) {
  return reinterpret_cast<void *>((uint64_t{tensor} << 40) + bytes);
}
flydsl_aot_tensor tensor_at(Place tensor, flydsl_aot_dtype dtype,
                            const std::vector<int64_t> &sizes) {
  return flydsl_aot::tensor(at(tensor), dtype, sizes);
}

Params to_e4m3() {
  Params params = flydsl_aot::mx_quantise_params();
  params.x = tensor_at(kX, FLYDSL_AOT_BF16, {100, 320});
  params.out = tensor_at(kOut, FLYDSL_AOT_E4M3, {100, 320});
  params.scale = tensor_at(kScale, FLYDSL_AOT_E8M0, {100, 10});
  return params;
}
Params to_e2m1() {
  Params params = to_e4m3();
  params.out.dtype = FLYDSL_AOT_E2M1X2;
  params.out.strides[0] = 160;
  return params;
}
Params shuffled(Params params) {
  params.scale_layout = FLYDSL_AOT_SCALES_SHUFFLED_32_8;
  params.scale = tensor_at(kScale, FLYDSL_AOT_E8M0, {128, 16});
  return params;
}
Params batched() {
  Params params = to_e4m3();
  params.x = tensor_at(kX, FLYDSL_AOT_FP32, {3, 100, 320});
  params.out = tensor_at(kOut, FLYDSL_AOT_E5M2, {3, 100, 320});
  params.scale = tensor_at(kScale, FLYDSL_AOT_E8M0, {3, 100, 10});
  return params;
}

archive::ArchiveSpec spec_of_archive() {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  spec.library_version = FLYDSL_AOT_VERSION;
  for (const unsigned stochastic : {0u, 1u}) {
    const uint64_t key = flydsl_aot_mx_quantise_key(stochastic);
    archive::KernelSpec kernel =
        fake_kernel(stochastic ? "stochastic" : "nearest", key, stochastic);
    kernel.op = "mx_quantise";
    kernel.kernarg_layout_id = FLYDSL_AOT_MX_QUANTISE_KERNARG_LAYOUT_ID;
    kernel.kernarg_bytes = FLYDSL_AOT_MX_QUANTISE_KERNARG_BYTES;
    spec.kernels.push_back(kernel);
    spec.selection.push_back({kernel.op, key, {{kernel.name, 1, 0, 1u << 31, 0, 1u << 30}}});
  }
  return spec;
}

using MxQuantiseTestBase = OneKernelTest<Params, Kernarg, &flydsl_aot::Library::mx_quantise, &flydsl_aot::Library::mx_quantise_query>;
class MxQuantiseTest : public MxQuantiseTestBase {
 protected:
  archive::ArchiveSpec spec() const override { return spec_of_archive(); }
};

TEST_F(MxQuantiseTest, RefusesWhatIsWrong) {
  const auto refused = [&](const std::function<void(Params &)> &change, flydsl_aot_status status,
                           const char *message) {
    expect_refused(to_e4m3(), change, status, message);
  };
  for (const auto member : {&Params::x, &Params::out, &Params::scale})
    refused([&](Params &p) { p.*member = {}; }, FLYDSL_AOT_INVALID_SHAPE, "x, out and scale");
  refused([](Params &p) { p.reserved = 1; }, FLYDSL_AOT_INVALID_ARGUMENT, "reserved is 1");
  refused([](Params &p) { p.rounding = 2; }, FLYDSL_AOT_INVALID_ARGUMENT,
          "rounding is 2; it must be 0 (nearest even) or 1 (stochastic)");
  refused([](Params &p) { p.rounding = -1; }, FLYDSL_AOT_INVALID_ARGUMENT, "rounding is -1");
  refused([](Params &p) { p.scale_layout = 7; }, FLYDSL_AOT_INVALID_ARGUMENT, "scale_layout is 7");

  refused([](Params &p) { p.x.rank = 1; }, FLYDSL_AOT_INVALID_SHAPE,
          "x has rank 1; expected 2 or, batched, 3");
  refused([](Params &p) { p.x.rank = -2; }, FLYDSL_AOT_INVALID_SHAPE, "x has rank -2");
  refused([](Params &p) { p.out.rank = 3; }, FLYDSL_AOT_INVALID_SHAPE, "out has rank 3");
  refused([](Params &p) { p.scale.rank = 1; }, FLYDSL_AOT_INVALID_SHAPE, "scale has rank 1");
  refused([](Params &p) { p.x.sizes[0] = -1; }, FLYDSL_AOT_INVALID_SHAPE, "size -1");
  refused([](Params &p) { p.out.sizes[0] = 99; }, FLYDSL_AOT_INVALID_SHAPE, "out has M = 99");
  refused([](Params &p) { p.out.sizes[1] = 160; }, FLYDSL_AOT_INVALID_SHAPE, "out has K = 160");
  refused([](Params &p) { p.scale.sizes[1] = 320; }, FLYDSL_AOT_INVALID_SHAPE,
          "scale is 100 x 320; x is 100 x 320, which needs 100 x 10");
  refused([](Params &p) { p.scale_layout = FLYDSL_AOT_SCALES_SHUFFLED_32_8; },
          FLYDSL_AOT_INVALID_SHAPE, "which needs 128 x 16");
  expect_refused(
      batched(), [](Params &p) { p.scale.sizes[0] = 1; }, FLYDSL_AOT_INVALID_SHAPE,
      "scale has batch = 1");

  refused([](Params &p) { p.x.dtype = FLYDSL_AOT_FP64; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "x is fp64; supported: fp32, fp16, bf16");
  refused([](Params &p) { p.x.dtype = 99; }, FLYDSL_AOT_INVALID_DTYPE, "number 99");
  refused([](Params &p) { p.out.dtype = FLYDSL_AOT_E4M3_FNUZ; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "supported: e4m3, e5m2, e2m1x2");
  refused([](Params &p) { p.scale.dtype = FLYDSL_AOT_BOOL; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "supported: e8m0");
}

TEST_F(MxQuantiseTest, RefusesWrongMemory) {
  const auto refused = [&](const Params &params, const std::function<void(Params &)> &change,
                           flydsl_aot_status status, const char *message) {
    expect_refused(params, change, status, message);
  };
  refused(
      to_e4m3(), [](Params &p) { p.x.strides[1] = 2; }, FLYDSL_AOT_INVALID_STRIDE,
      "x has stride 2 on its last axis (K); it must be 1");
  refused(
      to_e2m1(), [](Params &p) { p.out.strides[1] = 100; }, FLYDSL_AOT_INVALID_STRIDE,
      "out has stride 100 on its last axis (K)");
  refused(
      to_e4m3(), [](Params &p) { p.out.strides[0] = 319; }, FLYDSL_AOT_INVALID_STRIDE,
      "out overlaps itself");
  refused(
      to_e2m1(), [](Params &p) { p.out.strides[0] = 159; }, FLYDSL_AOT_INVALID_STRIDE,
      "out overlaps itself");
  refused(
      to_e4m3(), [](Params &p) { p.scale.strides[0] = 0; }, FLYDSL_AOT_INVALID_STRIDE,
      "scale overlaps itself");
  refused(
      to_e4m3(), [](Params &p) { p.x.strides[0] = -320; }, FLYDSL_AOT_INVALID_STRIDE,
      "x has stride -320");
  refused(
      to_e4m3(), [](Params &p) { p.x.strides[0] = std::numeric_limits<int64_t>::max(); },
      FLYDSL_AOT_INVALID_STRIDE, "do not fit 63 bits");
  refused(
      shuffled(to_e4m3()), [](Params &p) { p.scale.strides[0] = 32; }, FLYDSL_AOT_INVALID_STRIDE,
      "scale has strides 32 and 1 on its last axes; shuffled scales are dense: 16 and 1");
  for (const auto member : {&Params::x, &Params::out, &Params::scale})
    refused(
        to_e4m3(), [&](Params &p) { (p.*member).data = nullptr; }, FLYDSL_AOT_INVALID_POINTER,
        "has data NULL");
  refused(
      to_e4m3(), [](Params &p) { p.x.data = at(kX, 1); }, FLYDSL_AOT_INVALID_POINTER,
      "not aligned to its element size of 2 bytes");
  refused(
      to_e4m3(), [](Params &p) { p.out.data = p.x.data; }, FLYDSL_AOT_INVALID_POINTER,
      "out overlaps x");
  refused(
      to_e4m3(), [](Params &p) { p.scale.data = at(kX, 640 * 99); }, FLYDSL_AOT_INVALID_POINTER,
      "scale overlaps x");
  refused(
      to_e2m1(), [](Params &p) { p.scale.data = at(kOut, 100 * 160 - 1); },
      FLYDSL_AOT_INVALID_POINTER, "out overlaps scale");
  // Two elements share a byte.
  Params after = to_e2m1();
  after.scale.data = at(kOut, 100 * 160);
  EXPECT_EQ(kernel_of(after), "nearest");
}

TEST_F(MxQuantiseTest, RefusesSizesPastItsLimits) {
  const auto refused = [&](const Params &params, const std::function<void(Params &)> &change,
                           const char *message) {
    expect_refused(params, change, FLYDSL_AOT_UNSUPPORTED_SIZE, message);
  };
  for (const int64_t k : {int64_t{16}, int64_t{321}, (int64_t{1} << 30) + 32}) {
    refused(
        to_e4m3(), [&](Params &p) { p.x.sizes[1] = p.out.sizes[1] = k; },
        "it must be a multiple of 32, at most 1073741824");
  }
  constexpr int64_t kPast = int64_t{1} << 31, kEnd = std::numeric_limits<int64_t>::max();
  for (const int64_t m : {kPast, kEnd}) {
    refused(
        to_e4m3(), [&](Params &p) { p.x.sizes[0] = p.out.sizes[0] = p.scale.sizes[0] = m; },
        "batch * M must be below 2^31");
    refused(
        batched(), [&](Params &p) { p.x.sizes[1] = p.out.sizes[1] = p.scale.sizes[1] = m; },
        "batch * M must be below 2^31");
    // Without a batch, too: the padded rows of the scale could not be counted.
    const auto no_batch = [&](Params &p) {
      p.x.sizes[0] = p.out.sizes[0] = p.scale.sizes[0] = 0;
      p.x.sizes[1] = p.out.sizes[1] = p.scale.sizes[1] = m;
      p.scale_layout = FLYDSL_AOT_SCALES_SHUFFLED_32_8;
    };
    refused(batched(), no_batch, "below 2^31");
  }
}

TEST_F(MxQuantiseTest, ChoosesByRounding) {
  EXPECT_EQ(kernel_of(to_e4m3()), "nearest");
  EXPECT_EQ(kernel_of(shuffled(to_e2m1())), "nearest");
  Params params = batched();
  params.rounding = FLYDSL_AOT_ROUND_STOCHASTIC;
  EXPECT_EQ(kernel_of(params), "stochastic");
  // Least alignment, an x that is the same for all rows.
  params = to_e2m1();
  params.x.data = at(kX, 2);
  params.x.strides[0] = 0;
  params.out.data = at(kOut, 1);
  params.scale.strides[0] = 1;
  params.scale.strides[1] = 100;
  EXPECT_EQ(kernel_of(params), "nearest");
}

TEST_F(MxQuantiseTest, TellsKernelsWhereThingsAre) {
  Params params = batched();
  params.rounding = FLYDSL_AOT_ROUND_STOCHASTIC;
  params.seed = 0x123456789abcdef0;
  params.offset = ~uint64_t{1};
  params.scale.strides[1] = 11;
  params.scale.strides[0] = 1101;
  kernel_of(params);
  Kernarg args = kernarg();
  EXPECT_EQ(std::tuple(args.x, args.out, args.scale),
            std::tuple(params.x.data, params.out.data, params.scale.data));
  EXPECT_EQ(std::tuple(args.x_stride_b, args.x_stride_m), std::tuple(128000, 1280));
  EXPECT_EQ(std::tuple(args.out_stride_b, args.out_stride_m), std::tuple(32000, 320));
  EXPECT_EQ(std::tuple(args.scale_stride_b, args.scale_stride_m, args.scale_stride_k),
            std::tuple(1101, 11, 1));
  EXPECT_EQ(std::tuple(args.seed, args.offset), std::tuple(params.seed, params.offset));
  EXPECT_EQ(std::tuple(args.x_dtype, args.out_dtype, args.scales_shuffled),
            std::tuple(uint32_t{FLYDSL_AOT_FP32}, uint32_t{FLYDSL_AOT_E5M2}, 0u));
  EXPECT_EQ(std::tuple(args.rows, args.m, args.k), std::tuple(300u, 100u, 320u));
  // 8 elements a lane: 64 lanes have 320, and 4 rows are done at a time.
  EXPECT_EQ(std::tuple(args.lanes_log2, args.groups), std::tuple(6u, 75u));
  EXPECT_EQ(fake_->last_launch.grid[0], 75u);

  kernel_of(shuffled(to_e2m1()));
  args = kernarg();
  EXPECT_EQ(std::tuple(args.out_stride_b, args.out_stride_m), std::tuple(0, 160));
  EXPECT_EQ(std::tuple(args.scale_stride_b, args.scale_stride_m), std::tuple(0, 16));
  EXPECT_EQ(args.scales_shuffled, 1u);
}

TEST_F(MxQuantiseTest, LaunchesNothingWithoutElements) {
  Params params = to_e4m3();
  params.x.sizes[0] = params.out.sizes[0] = params.scale.sizes[0] = 0;
  params.x.data = params.out.data = params.scale.data = nullptr;
  EXPECT_EQ(kernel_of(params), "");
  params = to_e2m1();
  params.x.sizes[1] = params.out.sizes[1] = params.scale.sizes[1] = 0;
  EXPECT_EQ(kernel_of(params), "");
  params = batched();
  params.x.sizes[0] = params.out.sizes[0] = params.scale.sizes[0] = 0;
  EXPECT_EQ(kernel_of(params), "");
}

}  // namespace
}  // namespace flydsl::test
