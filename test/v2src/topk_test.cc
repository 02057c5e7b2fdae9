// topk and topk_softmax: what is refused, and what kernels are told. On a pretend device with pretend code objects: launches are
// recorded, not computed.
#include <functional>
#include <tuple>

#include "flydsl_aot/flydsl_aot.hpp"
#include "flydsl_aot_generated/abi.h"
#include "flydsl_aot_generated/topk_kernarg.h"
#include "flydsl_aot_generated/topk_softmax_kernarg.h"
#include "test/src/archive/archive_fixture.h"
#include "test/v2src/one_kernel_fixture.h"

namespace flydsl::test {
namespace {

// Tensors far apart.
flydsl_aot_tensor tensor_at(uint64_t number, flydsl_aot_dtype dtype,
                            const std::vector<int64_t> &sizes) {
  return flydsl_aot::tensor(reinterpret_cast<void *>(number << 44), dtype, sizes);
}

archive::ArchiveSpec spec_of_archive(const char *op, const std::vector<uint64_t> &keys,
                                     uint64_t layout, uint32_t kernarg_bytes) {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  spec.library_version = FLYDSL_AOT_VERSION;
  for (const uint64_t key : keys) {
    archive::KernelSpec kernel =
        fake_kernel("kernel" + std::to_string(spec.kernels.size()), key, spec.kernels.size());
    kernel.op = op;
    kernel.kernarg_layout_id = layout;
    kernel.kernarg_bytes = kernarg_bytes;
    kernel.tile[0] = 4;
    spec.kernels.push_back(kernel);
    spec.selection.push_back({op, key, {{kernel.name, 1, 0, 1u << 31, 0, ~0u}}});
  }
  return spec;
}

using TopkBase = OneKernelTest<flydsl_aot_topk_params, flydsl_aot_topk_kernarg,
                               &flydsl_aot::Library::topk, &flydsl_aot::Library::topk_query>;
class TopkTest : public TopkBase {
 protected:
  using Params = flydsl_aot_topk_params;

  archive::ArchiveSpec spec() const override {
    std::vector<uint64_t> keys;
    for (uint64_t method = 0; method < 5; ++method)
      keys.push_back(flydsl_aot_topk_key(FLYDSL_AOT_FP32, method));
    return spec_of_archive("topk", keys, FLYDSL_AOT_TOPK_KERNARG_LAYOUT_ID,
                           FLYDSL_AOT_TOPK_KERNARG_BYTES);
  }
  static Params rows(int64_t count, int64_t length, int64_t k) {
    Params params = flydsl_aot::topk_params();
    params.x = tensor_at(1, FLYDSL_AOT_FP32, {count, length});
    params.values = tensor_at(2, FLYDSL_AOT_FP32, {count, k});
    params.indices = tensor_at(3, FLYDSL_AOT_INT64, {count, k});
    return params;
  }
};

TEST_F(TopkTest, RefusesWhatIsWrong) {
  const auto refused = [&](const std::function<void(Params &)> &change, flydsl_aot_status status,
                           const char *message) {
    expect_refused(rows(100, 1000, 10), change, status, message);
  };
  for (const auto member : {&Params::x, &Params::values, &Params::indices})
    refused([&](Params &p) { p.*member = {}; }, FLYDSL_AOT_INVALID_SHAPE, "x, values and indices");
  refused([](Params &p) { p.smallest = 2; }, FLYDSL_AOT_INVALID_ARGUMENT, "smallest is 2");
  refused([](Params &p) { p.any_order = 7; }, FLYDSL_AOT_INVALID_ARGUMENT, "any_order 7");
  refused([](Params &p) { p.axis = 2; }, FLYDSL_AOT_INVALID_ARGUMENT, "it must be -2 to 1");
  refused([](Params &p) { p.axis = -3; }, FLYDSL_AOT_INVALID_ARGUMENT, "axis is -3");
  refused([](Params &p) { p.x.rank = 9; }, FLYDSL_AOT_INVALID_SHAPE, "x has rank 9");
  refused([](Params &p) { p.values.sizes[0] = 99; }, FLYDSL_AOT_INVALID_SHAPE, "99");
  refused([](Params &p) { p.indices.sizes[1] = 11; }, FLYDSL_AOT_INVALID_SHAPE, "11");
  refused([](Params &p) { p.values.sizes[1] = p.indices.sizes[1] = 1001; },
          FLYDSL_AOT_INVALID_SHAPE, "K = 1001");
  refused([](Params &p) { p.x.sizes[1] = -1; }, FLYDSL_AOT_INVALID_SHAPE, "-1");
  refused([](Params &p) { p.x.dtype = FLYDSL_AOT_FP64; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "x is fp64; supported: fp32, fp16, bf16, int32");
  refused([](Params &p) { p.x.dtype = 99; }, FLYDSL_AOT_INVALID_DTYPE, "number 99");
  refused([](Params &p) { p.values.dtype = FLYDSL_AOT_BF16; }, FLYDSL_AOT_INVALID_DTYPE,
          "it must be fp32");
  refused([](Params &p) { p.indices.dtype = FLYDSL_AOT_FP32; }, FLYDSL_AOT_INVALID_DTYPE,
          "it must be int32 or int64");
  refused([](Params &p) { p.x.strides[0] = -1; }, FLYDSL_AOT_INVALID_STRIDE, "x has stride -1");
  refused([](Params &p) { p.values.strides[0] = 9; }, FLYDSL_AOT_INVALID_STRIDE,
          "values overlaps itself");
  refused([](Params &p) { p.indices.data = p.values.data; }, FLYDSL_AOT_INVALID_POINTER,
          "values overlaps indices");
  refused([](Params &p) { p.values.data = p.x.data; }, FLYDSL_AOT_INVALID_POINTER,
          "values overlaps x");
  for (const auto member : {&Params::x, &Params::values, &Params::indices})
    refused([&](Params &p) { (p.*member).data = nullptr; }, FLYDSL_AOT_INVALID_POINTER,
            "has data NULL");
}

TEST_F(TopkTest, RefusesSizesPastItsLimits) {
  const auto refused = [&](int64_t length, flydsl_aot_dtype index, const char *message) {
    Params params = rows(1, length, 10);
    params.indices.dtype = index;
    expect_refused(
        params, [](Params &) {}, FLYDSL_AOT_UNSUPPORTED_SIZE, message);
  };
  refused((int64_t{1} << 31) + 1, FLYDSL_AOT_INT32, "at most 2147483648 with int32 indices");
  refused((int64_t{1} << 32) - 2, FLYDSL_AOT_INT64, "at most 4294967293 with int64 indices");
}

// What the parts of a row leave needs room.
TEST_F(TopkTest, RefusesAWorkspaceThatIsTooSmall) {
  Params params = rows(2, 20000, 100);  // parts of 8192, 8192 and 3616
  flydsl_aot_query_result result;
  ASSERT_TRUE(library_.topk_query(params, &result).ok());
  EXPECT_EQ(result.workspace_bytes, 2u * 3 * 100 * 8);
  const int before = fake_->launches;
  const auto refused = [&](uint64_t address, uint64_t bytes, const char *message) {
    params.workspace = reinterpret_cast<void *>(address);
    params.workspace_bytes = bytes;
    const auto status = library_.topk(params, nullptr);
    EXPECT_EQ(status.code(), FLYDSL_AOT_INVALID_WORKSPACE);
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
  };
  refused(0, 4800, "workspace is NULL");
  refused(uint64_t{4} << 44, 4799, "needs 4800 bytes");
  refused((uint64_t{4} << 44) + 8, 4800, "16-byte aligned");
  EXPECT_EQ(fake_->launches, before);
  params.workspace = reinterpret_cast<void *>(uint64_t{4} << 44);
  EXPECT_TRUE(library_.topk(params, nullptr).ok());
  EXPECT_EQ(fake_->launches, before + 2);
}

TEST_F(TopkTest, ChoosesByRowsAndLength) {
  EXPECT_EQ(kernel_of(rows(3, 2048, 32)), "kernel0");
  EXPECT_EQ(kernel_of(rows(1024, 8192, 32)), "kernel0");
  EXPECT_EQ(kernel_of(rows(1023, 8192, 32)), "kernel1");
  EXPECT_EQ(kernel_of(rows(3, 2048, 33)), "kernel1");
  Params params = rows(3, 2048, 3);
  params.x.strides[0] = 1;
  params.x.strides[1] = 3;
  EXPECT_EQ(kernel_of(params), "kernel2");
  params = rows(0, 2048, 3);
  EXPECT_EQ(kernel_of(params), "");
}

using GateBase =
    OneKernelTest<flydsl_aot_topk_softmax_params, flydsl_aot_topk_softmax_kernarg,
                  &flydsl_aot::Library::topk_softmax, &flydsl_aot::Library::topk_softmax_query>;
class TopkSoftmaxTest : public GateBase {
 protected:
  using Params = flydsl_aot_topk_softmax_params;

  archive::ArchiveSpec spec() const override {
    return spec_of_archive("topk_softmax", {flydsl_aot_topk_softmax_key(FLYDSL_AOT_BF16)},
                           FLYDSL_AOT_TOPK_SOFTMAX_KERNARG_LAYOUT_ID,
                           FLYDSL_AOT_TOPK_SOFTMAX_KERNARG_BYTES);
  }
  static Params gate() {
    Params params = flydsl_aot::topk_softmax_params();
    params.x = tensor_at(1, FLYDSL_AOT_BF16, {100, 128});
    params.weights = tensor_at(2, FLYDSL_AOT_FP32, {100, 8});
    params.indices = tensor_at(3, FLYDSL_AOT_INT32, {100, 8});
    return params;
  }
};

TEST_F(TopkSoftmaxTest, RefusesWhatIsWrong) {
  const auto refused = [&](const std::function<void(Params &)> &change, flydsl_aot_status status,
                           const char *message) {
    expect_refused(gate(), change, status, message);
  };
  for (const auto member : {&Params::x, &Params::weights, &Params::indices})
    refused([&](Params &p) { p.*member = {}; }, FLYDSL_AOT_INVALID_SHAPE, "x, weights and indices");
  refused([](Params &p) { p.chosen_only = 2; }, FLYDSL_AOT_INVALID_ARGUMENT, "chosen_only is 2");
  refused([](Params &p) { p.x.rank = 1; }, FLYDSL_AOT_INVALID_SHAPE, "x has rank 1");
  refused([](Params &p) { p.weights.sizes[0] = 99; }, FLYDSL_AOT_INVALID_SHAPE, "99");
  refused([](Params &p) { p.indices.sizes[1] = 7; }, FLYDSL_AOT_INVALID_SHAPE, "7");
  refused([](Params &p) { p.x.sizes[1] = 7; }, FLYDSL_AOT_INVALID_SHAPE, "K = 8");
  refused([](Params &p) { p.weights.sizes[1] = p.indices.sizes[1] = 17; },
          FLYDSL_AOT_UNSUPPORTED_SIZE, "K 17; N must be at most 512 and K at most 16");
  refused([](Params &p) { p.x.sizes[1] = p.x.strides[0] = 513; }, FLYDSL_AOT_UNSUPPORTED_SIZE,
          "N is 513");
  refused([](Params &p) { p.x.dtype = FLYDSL_AOT_INT32; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "x is int32; supported: fp32, fp16, bf16");
  refused([](Params &p) { p.weights.dtype = FLYDSL_AOT_FP16; }, FLYDSL_AOT_INVALID_DTYPE,
          "it must be fp32 or bf16");
  refused([](Params &p) { p.indices.dtype = FLYDSL_AOT_BOOL; }, FLYDSL_AOT_INVALID_DTYPE,
          "it must be int32 or int64");
  refused([](Params &p) { p.x.strides[1] = 2; }, FLYDSL_AOT_INVALID_STRIDE, "it must be 1");
  refused([](Params &p) { p.weights.strides[0] = 7; }, FLYDSL_AOT_INVALID_STRIDE,
          "weights overlaps itself");
  refused([](Params &p) { p.weights.data = p.x.data; }, FLYDSL_AOT_INVALID_POINTER,
          "weights overlaps x");
  refused([](Params &p) { p.indices.data = p.weights.data; }, FLYDSL_AOT_INVALID_POINTER,
          "weights overlaps indices");
  for (const auto member : {&Params::x, &Params::weights, &Params::indices})
    refused([&](Params &p) { (p.*member).data = nullptr; }, FLYDSL_AOT_INVALID_POINTER,
            "has data NULL");
}

TEST_F(TopkSoftmaxTest, TellsKernelsWhereThingsAre) {
  Params params = gate();
  params.chosen_only = 1;
  params.weights.strides[0] = 1;
  params.weights.strides[1] = 100;
  EXPECT_EQ(kernel_of(params), "kernel0");
  const flydsl_aot_topk_softmax_kernarg args = kernarg();
  EXPECT_EQ(std::tuple(args.x, args.weights, args.indices),
            std::tuple(params.x.data, params.weights.data, params.indices.data));
  EXPECT_EQ(std::tuple(args.x_stride_i, args.weights_stride_i, args.weights_stride_k,
                       args.indices_stride_i, args.indices_stride_k),
            std::tuple(256, 4, 400, 32, 4));
  EXPECT_EQ(std::tuple(args.rows, args.rows_inner, args.tiles, args.groups),
            std::tuple(100u, 100u, 25u, 25u));
  EXPECT_EQ(
      std::tuple(args.length, args.k, args.chosen_only, args.weights_are_fp32, args.wide_indices),
      std::tuple(128u, 8u, 1u, 1u, 0u));
  params.weights.sizes[1] = params.indices.sizes[1] = 0;
  EXPECT_EQ(kernel_of(params), "");
}

}  // namespace
}  // namespace flydsl::test
