// scaled_gemm and mx_quantise through the C ABI where lines of their cases do not reach: orders of calls, both in one graph,
// offsets past 2^32.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "test/emulator/hip/client_api.h"
#include "test/support/far_tensor.h"
#include "test/support/forced_library.h"
#include "test/support/library.h"
#include "tools/verify/scaled_gemm_verify.h"

namespace flydsl::test {
namespace {

using emu::test::hip;
using verify::DeviceTensor;
using verify::Elements;
using verify::ScaledGemmNumbers;
using verify::ScaledGemmResult;
using verify::ScaledGemmSpec;

Elements result_of(flydsl_aot_handle *handle, const std::string &line) {
  const ScaledGemmSpec spec = verify::parse_scaled_gemm_spec("case " + line);
  const ScaledGemmResult result =
      verify::call_scaled_gemm(handle, spec, verify::scaled_gemm_numbers(spec));
  EXPECT_EQ(result.status, FLYDSL_AOT_OK) << line << ": " << result.message;
  EXPECT_EQ(result.contradiction, "") << line;
  EXPECT_EQ(result.stray_write, "") << line;
  return result.d;
}

// ROCm/FlyDSL#317, #629, ROCm/aiter#4840: what a call gives does not depend on the calls before it.
TEST(ScaledGemmOrderOfCalls, flydsl_317_each_as_if_alone) {
  std::vector<std::string> lines;
  for (const char *types : {"", "a_dtype=e5m2 ", "a_dtype=e2m1 b_dtype=e2m1 "}) {
    for (const char *k : {"k=256 ", "k=384 ", "k=96 "}) {
      for (const char *scales : {"scales=plain ", "scales=shuffled "})
        lines.push_back(std::string("m=100 n=72 ") + types + k + scales);
    }
    lines.push_back(std::string("m=100 n=72 k=256 a_place=pitch:1 ") + types);
    lines.push_back(std::string("m=100 n=72 k=256 d_order=nm bias=bf16 ") + types);
  }
  std::vector<decltype(Elements::bits)> alone;
  for (const std::string &line : lines) {
    flydsl_aot_handle *const fresh = open_emulator();
    alone.push_back(result_of(fresh, line).bits);
    flydsl_aot_close(fresh);
  }
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(result_of(emulator(), lines[i]).bits, alone[i]) << lines[i];
  for (size_t i = lines.size(); i-- > 0;)
    EXPECT_EQ(result_of(emulator(), lines[i]).bits, alone[i]) << lines[i];
}

// The size of tiles does not matter: those for large problems give the bits that those of small ones do.
TEST(ScaledGemmTiles, LargeOnesOnSmallProblems) {
  const auto forced = [](const char *tile) {
    return open_forced("scaled_gemm", {"e4m3", "e4m3_shuffled", "e2m1", "e2m1_shuffled"}, tile);
  };
  const OwnedHandle small = forced("m128n128");
  for (const char *tile : {"m256n256", "m256n128"}) {
    const OwnedHandle large = forced(tile);
    for (const std::string types : {"", "a_dtype=e2m1 b_dtype=e2m1 "}) {
      for (const char *line :
           {"m=300 n=270 k=1024 d_dtype=fp32", "m=387 n=257 k=256 scales=shuffled bias=fp32",
            "m=264 n=512 k=1792 scales=shuffled a=bits b=bits", "m=322 n=512 k=512 d_dtype=fp16",
            "batch=3 m=357 n=258 k=512 d_order=nm a_place=random16",
            "m=264 n=256 k=768 scales=shuffled nan_a_scale=1 nan_b_scale=1 zero_b_scale=30"}) {
        const std::string problem = types + line;
        EXPECT_EQ(result_of(large.get(), problem).bits, result_of(small.get(), problem).bits)
            << tile << " " << problem;
      }
    }
  }
}

// Bytes of rows that lie far apart, as an operand (rows, K) or its transpose.
class FarBytes {
 public:
  FarBytes(int64_t rows, int64_t bytes) : memory_({1, 1, rows, bytes / 2}, 2) {}
  void set(const std::vector<uint8_t> &dense) {
    std::vector<uint16_t> pairs(dense.size() / 2);
    std::memcpy(pairs.data(), dense.data(), dense.size());
    memory_.set(pairs);
  }
  flydsl_aot_tensor view(flydsl_aot_dtype dtype, int64_t size) const {
    flydsl_aot_tensor view{};
    view.data = memory_.tensor().data;
    view.dtype = dtype;
    view.rank = 2;
    view.sizes[0] = memory_.tensor().sizes[2];
    view.sizes[1] = size;
    view.strides[0] = memory_.tensor().strides[2] * 2;
    view.strides[1] = 1;
    return view;
  }

 private:
  FarTensor memory_;
};

// Two elements a byte, the first in the low bits.
std::vector<uint8_t> packed(const std::vector<uint8_t> &codes) {
  std::vector<uint8_t> bytes(codes.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
  return bytes;
}

// Dao-AILab/flash-attention#2214, ROCm/triton#830, facebookexperimental/triton#3389: offsets of 32 bits that wrap. Sums without
// rounding, which all kernels form alike.
TEST(ScaledGemmLarge, triton_830_offsets_past_32_bits) {
  // Rows that are further apart than the fast kernels take, and many that are not.
  for (const char *types : {"", "a_dtype=e2m1 b_dtype=e2m1 "}) {
    for (const bool fast : {false, true}) {
      const std::string line = std::string(fast ? "m=2200 n=2200 k=256 " : "m=140 n=200 k=320 ") +
                               "a=int b=int exact=yes a_scales=125:129 b_scales=125:129 " + types;
      SCOPED_TRACE(line);
      const ScaledGemmSpec spec = verify::parse_scaled_gemm_spec("case " + line);
      const ScaledGemmNumbers numbers = verify::scaled_gemm_numbers(spec);
      const Elements near = result_of(emulator(), line);
      const bool pairs = spec.a.dtype == FLYDSL_AOT_E2M1X2;
      const int64_t row_bytes = pairs ? spec.k / 2 : spec.k;
      FarBytes a(spec.m, row_bytes), b(spec.n, row_bytes), a_scale(spec.m, spec.k / 32),
          b_scale(spec.n, spec.k / 32);
      a.set(pairs ? packed(numbers.a.codes) : numbers.a.codes);
      b.set(pairs ? packed(numbers.b.codes) : numbers.b.codes);
      a_scale.set(numbers.a.scales);
      b_scale.set(numbers.b.scales);
      FarTensor d({1, 1, spec.m, spec.n}, 2);
      flydsl_aot_scaled_gemm_params params{};
      params.struct_size = sizeof params;
      params.a = a.view(spec.a.dtype, spec.k);
      params.b = b.view(spec.b.dtype, spec.k);
      std::swap(params.b.sizes[0], params.b.sizes[1]);
      std::swap(params.b.strides[0], params.b.strides[1]);
      params.a_scale = a_scale.view(FLYDSL_AOT_E8M0, spec.k / 32);
      params.b_scale = b_scale.view(FLYDSL_AOT_E8M0, spec.k / 32);
      params.d = d.tensor();
      params.d.rank = 2;
      for (int axis = 0; axis < 2; ++axis) {
        params.d.sizes[axis] = params.d.sizes[axis + 2];
        params.d.strides[axis] = params.d.strides[axis + 2];
      }
      flydsl_aot_query_result query{};
      query.struct_size = sizeof query;
      ASSERT_EQ(flydsl_aot_scaled_gemm_query(emulator(), &params, &query), FLYDSL_AOT_OK);
      EXPECT_EQ(std::string(query.kernel).find("general") == std::string::npos, fast)
          << query.kernel;
      ASSERT_EQ(flydsl_aot_scaled_gemm(emulator(), &params, nullptr), FLYDSL_AOT_OK)
          << flydsl_aot_last_error();
      ASSERT_EQ(flydsl_aot_device_synchronize(emulator()), FLYDSL_AOT_OK)
          << flydsl_aot_last_error();
      const std::vector<uint16_t> result = d.get();
      EXPECT_EQ(decltype(near.bits)(result.begin(), result.end()), near.bits);
    }
  }
}

namespace api {
using emu::test::find_function;
FLYDSL_HIP_FUNCTION(hipStreamBeginCapture, hipStream_t, hipStreamCaptureMode)
FLYDSL_HIP_FUNCTION(hipStreamEndCapture, hipStream_t, hipGraph_t *)
FLYDSL_HIP_FUNCTION(hipGraphInstantiate, hipGraphExec_t *, hipGraph_t, hipGraphNode_t *, char *,
                    size_t)
FLYDSL_HIP_FUNCTION(hipGraphLaunch, hipGraphExec_t, hipStream_t)
FLYDSL_HIP_FUNCTION(hipGraphExecDestroy, hipGraphExec_t)
FLYDSL_HIP_FUNCTION(hipGraphDestroy, hipGraph_t)
}  // namespace api

// A layer of x: x to MXFP8, times a weight of MXFP8.
class Layer {
 public:
  explicit Layer(flydsl_aot_handle *handle)
      : handle_(handle),
        x_(handle, FLYDSL_AOT_BF16, {kRows, kK}, {}, 0),
        a_(handle, FLYDSL_AOT_E4M3, {kRows, kK}, {}, 0xff),
        a_scale_(handle, FLYDSL_AOT_E8M0, {kRows, kK / 32}, {}, 0xff),
        b_(handle, FLYDSL_AOT_E4M3, {kK, kColumns}, {{1, 0}, {}, {}, 0, 0}, 0x38),
        b_scale_(handle, FLYDSL_AOT_E8M0, {kColumns, kK / 32}, {}, 126),
        d_(handle, FLYDSL_AOT_FP32, {kRows, kColumns}, {}, 0xffffffff) {
    quantise_.struct_size = sizeof quantise_;
    quantise_.x = x_.tensor();
    quantise_.out = a_.tensor();
    quantise_.scale = a_scale_.tensor();
    multiply_.struct_size = sizeof multiply_;
    multiply_.a = a_.tensor();
    multiply_.a_scale = a_scale_.tensor();
    multiply_.b = b_.tensor();
    multiply_.b_scale = b_scale_.tensor();
    multiply_.d = d_.tensor();
  }
  // x[i, k] is value + i % 7: with b of 1 and scales of 1/2, d[i, j] is kK / 2 times that. (e4m3 has 1 to 14; 15 saturates.)
  void put(int value) {
    Elements x(FLYDSL_AOT_BF16, kRows * kK);
    for (size_t at = 0; at < x.bits.size(); ++at)
      x.set(at, static_cast<float>(value + static_cast<int>(at / kK) % 7));
    x.put(x_);
    for (DeviceTensor *tensor : {&a_, &a_scale_, &d_}) tensor->upload();
  }
  flydsl_aot_status prefetch() {
    const flydsl_aot_status status = flydsl_aot_mx_quantise_prefetch(handle_, &quantise_);
    return status ? status : flydsl_aot_scaled_gemm_prefetch(handle_, &multiply_);
  }
  flydsl_aot_status quantise(hipStream_t stream) {
    return flydsl_aot_mx_quantise(handle_, &quantise_, stream);
  }
  flydsl_aot_status multiply(hipStream_t stream) {
    return flydsl_aot_scaled_gemm(handle_, &multiply_, stream);
  }
  void expect(int value) {
    const Elements d = Elements::taken_from(d_);
    for (size_t at = 0; at < d.bits.size(); ++at)
      ASSERT_EQ(d[at], kK / 2 * (value + static_cast<int>(at / kColumns) % 7)) << at;
  }

 private:
  static constexpr int64_t kRows = 100, kColumns = 72, kK = 256;
  flydsl_aot_handle *handle_;
  DeviceTensor x_, a_, a_scale_, b_, b_scale_, d_;
  flydsl_aot_mx_quantise_params quantise_{};
  flydsl_aot_scaled_gemm_params multiply_{};
};

TEST(ScaledGemmGraph, QuantisesAndMultipliesWhatIsInMemoryThen) {
  const std::unique_ptr<flydsl_aot_handle, decltype(&flydsl_aot_close)> handle(open_emulator(),
                                                                               flydsl_aot_close);
  Layer layer(handle.get());
  hipStream_t stream = nullptr;
  EXPECT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  const auto captured = [&](flydsl_aot_status expected) {
    hipGraph_t graph = nullptr;
    hipGraphExec_t exec = nullptr;
    EXPECT_EQ(api::hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
    EXPECT_EQ(layer.quantise(stream), expected) << flydsl_aot_last_error();
    EXPECT_EQ(layer.multiply(stream), expected) << flydsl_aot_last_error();
    EXPECT_EQ(api::hipStreamEndCapture(stream, &graph), hipSuccess);
    EXPECT_EQ(api::hipGraphInstantiate(&exec, graph, static_cast<hipGraphNode_t *>(nullptr),
                                       static_cast<char *>(nullptr), size_t{0}),
              hipSuccess);
    EXPECT_EQ(api::hipGraphDestroy(graph), hipSuccess);
    return exec;
  };
  EXPECT_EQ(api::hipGraphExecDestroy(captured(FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH)), hipSuccess);
  ASSERT_EQ(layer.prefetch(), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  layer.put(1);
  hipGraphExec_t exec = captured(FLYDSL_AOT_OK);
  for (const int value : {1, 8, -7}) {
    layer.put(value);
    ASSERT_EQ(api::hipGraphLaunch(exec, stream), hipSuccess);
    ASSERT_EQ(flydsl_aot_device_synchronize(handle.get()), FLYDSL_AOT_OK);
    layer.expect(value);
  }
  EXPECT_EQ(api::hipGraphExecDestroy(exec), hipSuccess);
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

}  // namespace
}  // namespace flydsl::test
