// rms_norm_backward and layer_norm_backward: what is refused, and which passes run. On a pretend device with pretend code objects:
// launches are recorded, not computed.
#include <functional>
#include <tuple>

#include "flydsl_aot/flydsl_aot.hpp"
#include "flydsl_aot_generated/abi.h"
#include "flydsl_aot_generated/layer_norm_backward_kernarg.h"
#include "flydsl_aot_generated/rms_norm_backward_kernarg.h"
#include "test/src/archive/archive_fixture.h"
#include "test/v2src/one_kernel_fixture.h"

namespace flydsl::test {
namespace {

constexpr int64_t kHeld = 1000;  // elements of the longest row that the kernel for whole rows takes
constexpr uint64_t kWorkspace = uint64_t{99} << 44;

// Tensors far apart.
flydsl_aot_tensor tensor_at(uint64_t number, flydsl_aot_dtype dtype,
                            const std::vector<int64_t> &sizes) {
  return flydsl_aot::tensor(reinterpret_cast<void *>(number << 44), dtype, sizes);
}

// kernel0 to kernel3: rows, sums, columns and totals.
template <class KeyOf>
archive::ArchiveSpec spec_of_passes(const char *op, KeyOf key_of, uint64_t layout,
                                    uint32_t kernarg_bytes) {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  spec.library_version = FLYDSL_AOT_VERSION;
  for (uint64_t pass = 0; pass < 4; ++pass) {
    const uint64_t key = key_of(pass == 3 ? 0 : FLYDSL_AOT_BF16, pass);
    archive::KernelSpec kernel = fake_kernel("kernel" + std::to_string(pass), key, pass);
    kernel.op = op;
    kernel.kernarg_layout_id = layout;
    kernel.kernarg_bytes = kernarg_bytes;
    kernel.tile[0] = 4;
    spec.kernels.push_back(kernel);
    spec.selection.push_back(
        {op, key, {{kernel.name, 1, 0, 1u << 31, 0, pass == 0 ? uint32_t{kHeld} : 1u << 31}}});
  }
  return spec;
}

template <class Base>
class NormBackwardTest : public Base {
 protected:
  using Params = typename Base::CallParams;

  static void set_common(int64_t count, int64_t length, Params *params) {
    params->x = tensor_at(1, FLYDSL_AOT_BF16, {count, length});
    params->dout = tensor_at(2, FLYDSL_AOT_BF16, {count, length});
    params->rstd = tensor_at(3, FLYDSL_AOT_FP32, {count});
    params->weight = tensor_at(4, FLYDSL_AOT_BF16, {length});
    params->dx = tensor_at(5, FLYDSL_AOT_BF16, {count, length});
    params->dweight = tensor_at(6, FLYDSL_AOT_FP32, {length});
    params->workspace = reinterpret_cast<void *>(kWorkspace);
    params->workspace_bytes = uint64_t{1} << 40;
  }

  // How many kernels a call launches, of which the query names `main`, the last one being `last`.
  void expect_passes(const Params &params, int launches, const char *main, const char *last) {
    flydsl_aot_query_result result;
    const auto asked = Base::query(params, &result);
    ASSERT_TRUE(asked.ok()) << asked.message();
    EXPECT_STREQ(result.kernel, main);
    const int before = this->fake_->launches;
    const auto status = Base::call(params);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(this->fake_->launches, before + launches);
    if (launches == 0) return;
    EXPECT_EQ(std::string(last) + "_symbol", this->fake_->last_launch.symbol);
  }
};

class RmsBase
    : public OneKernelTest<
          flydsl_aot_rms_norm_backward_params, flydsl_aot_rms_norm_backward_kernarg,
          &flydsl_aot::Library::rms_norm_backward, &flydsl_aot::Library::rms_norm_backward_query> {
 protected:
  using CallParams = flydsl_aot_rms_norm_backward_params;
  auto query(const CallParams &params, flydsl_aot_query_result *result) {
    return library_.rms_norm_backward_query(params, result);
  }
  auto call(const CallParams &params) { return library_.rms_norm_backward(params, nullptr); }
  archive::ArchiveSpec spec() const override {
    return spec_of_passes("rms_norm_backward", flydsl_aot_rms_norm_backward_key,
                          FLYDSL_AOT_RMS_NORM_BACKWARD_KERNARG_LAYOUT_ID,
                          FLYDSL_AOT_RMS_NORM_BACKWARD_KERNARG_BYTES);
  }
};
class RmsNormBackwardTest : public NormBackwardTest<RmsBase> {
 protected:
  static CallParams rows(int64_t count, int64_t length) {
    CallParams params = flydsl_aot::rms_norm_backward_params();
    set_common(count, length, &params);
    return params;
  }
};

class LayerBase : public OneKernelTest<flydsl_aot_layer_norm_backward_params,
                                       flydsl_aot_layer_norm_backward_kernarg,
                                       &flydsl_aot::Library::layer_norm_backward,
                                       &flydsl_aot::Library::layer_norm_backward_query> {
 protected:
  using CallParams = flydsl_aot_layer_norm_backward_params;
  auto query(const CallParams &params, flydsl_aot_query_result *result) {
    return library_.layer_norm_backward_query(params, result);
  }
  auto call(const CallParams &params) { return library_.layer_norm_backward(params, nullptr); }
  archive::ArchiveSpec spec() const override {
    return spec_of_passes("layer_norm_backward", flydsl_aot_layer_norm_backward_key,
                          FLYDSL_AOT_LAYER_NORM_BACKWARD_KERNARG_LAYOUT_ID,
                          FLYDSL_AOT_LAYER_NORM_BACKWARD_KERNARG_BYTES);
  }
};
class LayerNormBackwardTest : public NormBackwardTest<LayerBase> {
 protected:
  static CallParams rows(int64_t count, int64_t length) {
    CallParams params = flydsl_aot::layer_norm_backward_params();
    set_common(count, length, &params);
    params.mean = tensor_at(7, FLYDSL_AOT_FP32, {count});
    params.dbias = tensor_at(8, FLYDSL_AOT_BF16, {length});
    return params;
  }
};

TEST_F(RmsNormBackwardTest, RefusesWhatIsWrong) {
  const auto refused = [&](const std::function<void(Params &)> &change, flydsl_aot_status status,
                           const char *message) {
    expect_refused(rows(100, 512), change, status, message);
  };
  for (const auto member : {&Params::x, &Params::dout, &Params::rstd})
    refused([&](Params &p) { p.*member = {}; }, FLYDSL_AOT_INVALID_SHAPE, "x, dout and rstd");
  refused([](Params &p) { p.dx = p.dweight = {}; }, FLYDSL_AOT_INVALID_ARGUMENT,
          "dx and dweight are both absent");
  refused(
      [](Params &p) {
        p.dsum = p.dx;
        p.dx = {};
      },
      FLYDSL_AOT_INVALID_ARGUMENT, "dsum is given, but there is no dx");
  refused([](Params &p) { p.weight_offset = 2; }, FLYDSL_AOT_INVALID_ARGUMENT,
          "weight_offset is 2; it must be 0 or 1");
  refused(
      [](Params &p) {
        p.weight_offset = 1;
        p.weight = {};
      },
      FLYDSL_AOT_INVALID_ARGUMENT, "there is no weight");
  refused([](Params &p) { p.x.dtype = FLYDSL_AOT_INT32; }, FLYDSL_AOT_UNSUPPORTED_DTYPE,
          "x is int32; supported: fp32, fp16, bf16");
  refused([](Params &p) { p.dout.dtype = FLYDSL_AOT_FP16; }, FLYDSL_AOT_INVALID_DTYPE,
          "it must be bf16");
  refused([](Params &p) { p.rstd.dtype = FLYDSL_AOT_BF16; }, FLYDSL_AOT_INVALID_DTYPE,
          "it must be fp32");
  refused([](Params &p) { p.dout.sizes[1] = 511; }, FLYDSL_AOT_INVALID_SHAPE, "511");
  refused([](Params &p) { p.rstd.sizes[0] = 99; }, FLYDSL_AOT_INVALID_SHAPE, "99");
  refused([](Params &p) { p.dweight.sizes[0] = 513; }, FLYDSL_AOT_INVALID_SHAPE, "513");
  refused([](Params &p) { p.x.strides[1] = 2; }, FLYDSL_AOT_INVALID_STRIDE, "it must be 1");
  refused([](Params &p) { p.dx.strides[0] = 1; }, FLYDSL_AOT_INVALID_STRIDE, "dx overlaps itself");
  refused([](Params &p) { p.dweight.data = p.weight.data; }, FLYDSL_AOT_INVALID_POINTER,
          "dweight overlaps weight");
  for (const auto member : {&Params::x, &Params::dout, &Params::rstd, &Params::dx})
    refused([&](Params &p) { (p.*member).data = nullptr; }, FLYDSL_AOT_INVALID_POINTER,
            "has data NULL");
}

TEST_F(LayerNormBackwardTest, RefusesWhatIsWrong) {
  const auto refused = [&](const std::function<void(Params &)> &change, flydsl_aot_status status,
                           const char *message) {
    expect_refused(rows(100, 512), change, status, message);
  };
  for (const auto member : {&Params::x, &Params::dout, &Params::rstd, &Params::mean})
    refused([&](Params &p) { p.*member = {}; }, FLYDSL_AOT_INVALID_SHAPE, "x, dout, mean and rstd");
  refused([](Params &p) { p.dx = p.dweight = p.dbias = {}; }, FLYDSL_AOT_INVALID_ARGUMENT,
          "dx, dweight and dbias are all absent");
  refused([](Params &p) { p.mean.sizes[0] = 99; }, FLYDSL_AOT_INVALID_SHAPE, "99");
  refused([](Params &p) { p.dbias.sizes[0] = 1; }, FLYDSL_AOT_INVALID_SHAPE, "dbias");
  refused([](Params &p) { p.dbias.data = p.dweight.data; }, FLYDSL_AOT_INVALID_POINTER, "overlaps");
}

// dx may take the place of x, dout or dsum, and only with their strides.
TEST_F(RmsNormBackwardTest, WritesInPlace) {
  Params params = rows(100, 512);
  params.dsum = tensor_at(9, FLYDSL_AOT_BF16, {100, 512});
  for (const auto member : {&Params::x, &Params::dout, &Params::dsum}) {
    params.dx = params.*member;
    expect_passes(params, 2, "kernel0", "kernel3");
  }
  expect_refused(
      params, [](Params &p) { p.dx.strides[0] = 1024; }, FLYDSL_AOT_INVALID_POINTER, "overlaps");
}

TEST_F(RmsNormBackwardTest, RunsThePassesThatAreNeeded) {
  const auto without = [](Params params, auto... members) {
    ((params.*members = {}), ...);
    return params;
  };
  const Params held = rows(100, kHeld), longer = rows(100, kHeld + 24);
  expect_passes(held, 2, "kernel0", "kernel3");
  expect_passes(longer, 3, "kernel2", "kernel3");
  expect_passes(without(held, &Params::dweight), 1, "kernel0", "kernel0");
  expect_passes(without(longer, &Params::dweight), 2, "kernel2", "kernel2");
  expect_passes(without(held, &Params::dx), 2, "kernel2", "kernel3");
  expect_passes(without(longer, &Params::dx), 2, "kernel2", "kernel3");
  expect_passes(rows(0, 512), 1, "kernel3", "kernel3");  // dweight is 0
  expect_passes(rows(100, 0), 0, "", "");
}

TEST_F(RmsNormBackwardTest, TellsTotalsWhichSlotsThereAre) {
  // Slots of as few rows as leave 131,072 threads of them, here of 256 threads with 4 rows at once.
  Params params = rows(10000, 512);
  expect_passes(params, 2, "kernel0", "kernel3");
  flydsl_aot_rms_norm_backward_kernarg args = kernarg();
  EXPECT_EQ(std::tuple(args.rows, args.slots, args.row_length), std::tuple(10000u, 500u, 512u));
  EXPECT_EQ(std::tuple(args.dweight, args.dweight_dtype),
            std::tuple(params.dweight.data, static_cast<uint32_t>(FLYDSL_AOT_FP32)));
  const uint64_t sums = reinterpret_cast<uint64_t>(args.dweight_sums);
  EXPECT_GE(sums, kWorkspace);
  EXPECT_EQ(sums % 16, 0u);
  params = rows(0, 512);
  expect_passes(params, 1, "kernel3", "kernel3");
  EXPECT_EQ(kernarg().slots, 0u);
}

TEST_F(LayerNormBackwardTest, HasTotalsOfBothSums) {
  Params params = rows(10000, 512);
  expect_passes(params, 2, "kernel0", "kernel3");
  flydsl_aot_layer_norm_backward_kernarg args = kernarg();
  EXPECT_EQ(args.tiles, 2u * 512 / 64);  // 64 columns of the pretend kernel's tile
  EXPECT_EQ(std::tuple(args.dbias, args.dbias_dtype),
            std::tuple(params.dbias.data, static_cast<uint32_t>(FLYDSL_AOT_BF16)));
  params.dweight = {};
  expect_passes(params, 2, "kernel0", "kernel3");
  args = kernarg();
  EXPECT_EQ(args.tiles, 512u / 64);
  EXPECT_EQ(args.dweight_sums, nullptr);
}

TEST_F(RmsNormBackwardTest, RefusesAWorkspaceThatIsTooSmall) {
  Params params = rows(2000, 512);
  flydsl_aot_query_result result;
  ASSERT_TRUE(library_.rms_norm_backward_query(params, &result).ok());
  const uint64_t needed = result.workspace_bytes;
  EXPECT_GT(needed, 0u);
  const auto refused = [&](uint64_t address, uint64_t bytes, const std::string &message) {
    expect_refused(
        params,
        [&](Params &p) {
          p.workspace = reinterpret_cast<void *>(address);
          p.workspace_bytes = bytes;
        },
        FLYDSL_AOT_INVALID_WORKSPACE, message);
  };
  refused(0, needed, "workspace is NULL");
  refused(kWorkspace, needed - 1, "needs " + std::to_string(needed) + " bytes");
  refused(kWorkspace + 8, needed, "16-byte aligned");
  // Data pointers do not change it, whichever passes they are good for.
  params.x.data = reinterpret_cast<void *>((uint64_t{1} << 44) + 2);
  ASSERT_TRUE(library_.rms_norm_backward_query(params, &result).ok());
  EXPECT_EQ(result.workspace_bytes, needed);
}

}  // namespace
}  // namespace flydsl::test
