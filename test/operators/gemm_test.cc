// gemm through the C ABI where lines of test/cases/gemm.txt do not reach: orders of calls, single bits, graphs.
#include <gtest/gtest.h>

#include <memory>

#include "test/emulator/hip/client_api.h"
#include "test/support/library.h"
#include "tools/verify/device_tensor.h"
#include "tools/verify/gemm_verify.h"

namespace flydsl::test {
namespace {

using verify::call_gemm;
using verify::DeviceTensor;
using verify::gemm_numbers;
using verify::GemmNumbers;
using verify::GemmResult;
using verify::GemmSpec;
using verify::parse_gemm_spec;

GemmResult result_of(flydsl_aot_handle *handle, const GemmSpec &spec, const GemmNumbers &numbers) {
  const GemmResult result = call_gemm(handle, spec, numbers);
  EXPECT_EQ(result.status, FLYDSL_AOT_OK) << spec.name << ": " << result.message;
  EXPECT_EQ(result.contradiction, "") << spec.name;
  EXPECT_EQ(result.stray_write, "") << spec.name;
  return result;
}

GemmResult result_of(flydsl_aot_handle *handle, const std::string &line) {
  const GemmSpec spec = parse_gemm_spec("case " + line);
  return result_of(handle, spec, gemm_numbers(spec));
}

// ROCm/FlyDSL#317, #629, ROCm/aiter#4840: what a call gives does not depend on the calls before it.
TEST(GemmOrderOfCalls, flydsl_317_each_as_if_alone) {
  std::vector<std::string> lines;
  for (const char *k : {"64", "72", "33", "4096"}) {
    for (const char *layout : {"rows", "columns"}) {
      for (const char *place : {"tight", "pitch:8", "pitch:1", "offset:1", "offset:4"}) {
        lines.push_back(std::string("m=40 n=72 k=") + k + " b_layout=" + layout +
                        " a_place=" + place + " b_place=" + place);
      }
    }
  }
  lines.insert(lines.end(), {"m=40 n=72 k=64 bias_n=normal", "m=40 n=72 k=64 dtype=fp16",
                             "m=40 n=72 k=64 dtype=e4m3 b_layout=columns"});
  std::vector<decltype(verify::Elements::bits)> alone;
  for (const std::string &line : lines) {
    flydsl_aot_handle *const fresh = open_emulator();
    alone.push_back(result_of(fresh, line).d.bits);
    flydsl_aot_close(fresh);
  }
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(result_of(emulator(), lines[i]).d.bits, alone[i]) << lines[i];
  for (size_t i = lines.size(); i-- > 0;)
    EXPECT_EQ(result_of(emulator(), lines[i]).d.bits, alone[i]) << lines[i];
}

// A product of a batch is that product alone, bit for bit, where parts of K are as many.
TEST(GemmBatches, EachAsIfAlone) {
  const GemmSpec together =
      parse_gemm_spec("case m=140 n=130 k=200 batch=3 bias_n=normal bias_n_batch=none");
  const GemmNumbers numbers = gemm_numbers(together);
  const GemmResult all = result_of(emulator(), together, numbers);
  GemmSpec alone = together;
  alone.batches = 1;
  const auto part = [](const verify::Elements &elements, size_t number, size_t of) {
    verify::Elements result(elements.dtype, elements.bits.size() / of);
    const auto first =
        elements.bits.begin() + static_cast<std::ptrdiff_t>(number * result.bits.size());
    result.bits.assign(first, first + static_cast<std::ptrdiff_t>(result.bits.size()));
    return result;
  };
  for (size_t batch = 0; batch < 3; ++batch) {
    GemmNumbers own = numbers;
    own.a = part(numbers.a, batch, 3);
    own.b = part(numbers.b, batch, 3);
    EXPECT_EQ(result_of(emulator(), alone, own).d.bits, part(all.d, batch, 3).bits) << batch;
  }
}

// triton-lang/triton#10745 and others: 0x80 is -0 in OCP's e4m3 and NaN in FNUZ's, 0x38 is 1 and 1/2.
TEST(GemmEncodings, triton_10745_e4m3_is_that_of_ocp) {
  const GemmSpec spec = parse_gemm_spec("case dtype=e4m3 m=3 n=5 k=64 a=1 b=1 d_dtype=fp32");
  GemmNumbers numbers = gemm_numbers(spec);
  for (const auto bits : numbers.a.bits) ASSERT_EQ(bits, 0x38u);
  numbers.a.bits[64 + 7] = 0x80;
  const GemmResult result = result_of(emulator(), spec, numbers);
  for (size_t at = 0; at < 15; ++at) EXPECT_EQ(result.d[at], at / 5 == 1 ? 63 : 64) << at;
}

// pytorch/pytorch#192497, NVIDIA/cutlass#1593, NVIDIA/TransformerEngine#3019: sizes of 0, operands without memory, of any strides.
TEST(GemmEmpty, pytorch_192497_sizes_that_are_0) {
  constexpr uint16_t kNan = 0x7fc1, kThree = 0x4040;
  DeviceTensor c(emulator(), FLYDSL_AOT_BF16, {64, 64}, {}, kNan);
  DeviceTensor d(emulator(), FLYDSL_AOT_BF16, {64, 64}, {}, kNan);
  const std::pair<int64_t, int64_t> strides[] = {{1, 1}, {0, 1}, {1, 0}, {64, 1}, {7, 3}};
  for (const auto &[outer, inner] : strides) {
    SCOPED_TRACE(std::to_string(outer) + ", " + std::to_string(inner));
    flydsl_aot_gemm_params params{};
    params.struct_size = sizeof params;
    params.alpha = 1;
    params.a = {nullptr, FLYDSL_AOT_BF16, 2, {64, 0}, {outer, inner}};
    params.b = {nullptr, FLYDSL_AOT_BF16, 2, {0, 64}, {outer, inner}};
    params.c = c.tensor();
    params.d = d.tensor();
    const auto run = [&] {
      d.upload();
      EXPECT_EQ(flydsl_aot_gemm(emulator(), &params, nullptr), FLYDSL_AOT_OK)
          << flydsl_aot_last_error();
      EXPECT_EQ(flydsl_aot_device_synchronize(emulator()), FLYDSL_AOT_OK)
          << flydsl_aot_last_error();
      return d.get<uint16_t>();
    };
    // K 0: beta 0 leaves C alone, beta 1 takes it.
    for (const uint16_t bits : run()) ASSERT_EQ(bits, 0);
    params.beta = 1;
    c.set(std::vector<uint16_t>(64 * 64, kThree));
    for (const uint16_t bits : run()) ASSERT_EQ(bits, kThree);
    c.set(std::vector<uint16_t>(64 * 64, kNan));

    // No rows, no columns: nothing is written.
    params.beta = 0;
    params.a = {nullptr, FLYDSL_AOT_BF16, 2, {0, 64}, {outer, inner}};
    params.b = c.tensor();
    params.d = {nullptr, FLYDSL_AOT_BF16, 2, {0, 64}, {outer, inner}};
    run();
    EXPECT_TRUE(d.untouched());
    params.a = c.tensor();
    params.b = {nullptr, FLYDSL_AOT_BF16, 2, {64, 0}, {outer, inner}};
    params.d = {nullptr, FLYDSL_AOT_BF16, 2, {64, 0}, {outer, inner}};
    run();
    EXPECT_TRUE(d.untouched());
  }
}

// Each byte of both 8-bit types against float64, by a product with 1 and with a unit vector.
TEST(GemmEncodings, EveryByte) {
  for (const char *dtype : {"e4m3", "e5m2"}) {
    const GemmSpec spec =
        parse_gemm_spec(std::string("case m=256 n=1 k=1 b=1 d_dtype=fp32 dtype=") + dtype);
    GemmNumbers numbers = gemm_numbers(spec);
    for (uint32_t byte = 0; byte < 256; ++byte) numbers.a.bits[byte] = byte;
    const GemmResult result = result_of(emulator(), spec, numbers);
    for (size_t byte = 0; byte < 256; ++byte) {
      const double expected = numbers.a[byte];
      EXPECT_EQ(std::isnan(result.d[byte]), std::isnan(expected)) << dtype << " " << byte;
      if (!std::isnan(expected)) {
        EXPECT_EQ(result.d[byte], expected) << dtype << " " << byte;
      }
    }
  }
}

// fp32 has 24 bits of precision in its products: no narrower form comes between.
TEST(GemmFp32, ProductsAreNotOfANarrowerType) {
  const GemmSpec spec = parse_gemm_spec("case dtype=fp32 m=2 n=2 k=4");
  GemmNumbers numbers = gemm_numbers(spec);
  numbers.a.bits.assign(8, 0);
  numbers.b.bits.assign(8, 0);
  for (const size_t row : {0u, 1u}) {
    numbers.a.set(row * 4, 1 + 0x1p-23f);
    numbers.a.set(row * 4 + 1, -1);
  }
  for (const size_t column : {0u, 1u}) {
    numbers.b.set(column, 1);
    numbers.b.set(2 + column, 1);
  }
  const GemmResult result = result_of(emulator(), spec, numbers);
  for (size_t at = 0; at < 4; ++at) EXPECT_EQ(result.d[at], 0x1p-23) << at;
}

namespace api {
using emu::test::find_function;
using emu::test::hip;
FLYDSL_HIP_FUNCTION(hipStreamBeginCapture, hipStream_t, hipStreamCaptureMode)
FLYDSL_HIP_FUNCTION(hipStreamEndCapture, hipStream_t, hipGraph_t *)
FLYDSL_HIP_FUNCTION(hipGraphInstantiate, hipGraphExec_t *, hipGraph_t, hipGraphNode_t *, char *,
                    size_t)
FLYDSL_HIP_FUNCTION(hipGraphLaunch, hipGraphExec_t, hipStream_t)
FLYDSL_HIP_FUNCTION(hipGraphExecDestroy, hipGraphExec_t)
FLYDSL_HIP_FUNCTION(hipGraphDestroy, hipGraph_t)
}  // namespace api

// Parts of K and their second pass in a graph, replayed on other numbers and a workspace full of NaN.
TEST(GemmGraph, ReplaysOnWhatIsInMemoryThen) {
  const GemmSpec spec = parse_gemm_spec("case m=16 n=64 k=4096 b_layout=rows");
  GemmSpec second = spec;
  second.seed = 7;
  const GemmNumbers first_numbers = gemm_numbers(spec), second_numbers = gemm_numbers(second);
  const GemmResult expected = result_of(emulator(), spec, second_numbers);

  verify::DeviceTensor a(emulator(), FLYDSL_AOT_BF16, {16, 4096}, {}, 0);
  verify::DeviceTensor b(emulator(), FLYDSL_AOT_BF16, {4096, 64}, {}, 0);
  verify::DeviceTensor d(emulator(), FLYDSL_AOT_BF16, {16, 64}, {}, 0xffff);
  first_numbers.a.put(a);
  first_numbers.b.put(b);
  flydsl_aot_gemm_params params{};
  params.struct_size = sizeof params;
  params.alpha = 1;
  params.a = a.tensor();
  params.b = b.tensor();
  params.d = d.tensor();
  flydsl_aot_query_result query{};
  query.struct_size = sizeof query;
  ASSERT_EQ(flydsl_aot_gemm_query(emulator(), &params, &query), FLYDSL_AOT_OK);
  ASSERT_GT(query.workspace_bytes, 0u);
  verify::DeviceTensor workspace(emulator(), FLYDSL_AOT_BOOL,
                                 {static_cast<int64_t>(query.workspace_bytes)}, {}, 0xff);
  params.workspace = workspace.tensor().data;
  params.workspace_bytes = query.workspace_bytes;
  ASSERT_EQ(flydsl_aot_gemm_prefetch(emulator(), &params), FLYDSL_AOT_OK);

  hipStream_t stream = nullptr;
  EXPECT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  ASSERT_EQ(api::hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
  EXPECT_EQ(flydsl_aot_gemm(emulator(), &params, stream), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  ASSERT_EQ(api::hipStreamEndCapture(stream, &graph), hipSuccess);
  ASSERT_EQ(api::hipGraphInstantiate(&exec, graph, static_cast<hipGraphNode_t *>(nullptr),
                                     static_cast<char *>(nullptr), size_t{0}),
            hipSuccess);
  for (int replay = 0; replay < 2; ++replay) {
    second_numbers.a.put(a);
    second_numbers.b.put(b);
    workspace.upload();
    d.upload();
    ASSERT_EQ(api::hipGraphLaunch(exec, stream), hipSuccess);
    ASSERT_EQ(flydsl_aot_device_synchronize(emulator()), FLYDSL_AOT_OK);
    EXPECT_EQ(verify::Elements::taken_from(d).bits, expected.d.bits) << replay;
  }
  EXPECT_EQ(api::hipGraphExecDestroy(exec), hipSuccess);
  EXPECT_EQ(api::hipGraphDestroy(graph), hipSuccess);
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

// A first use within a capture is refused, and says what to call.
TEST(GemmGraph, AFirstUseWithinACaptureNamesPrefetch) {
  const std::unique_ptr<flydsl_aot_handle, decltype(&flydsl_aot_close)> handle(open_emulator(),
                                                                               flydsl_aot_close);
  flydsl_aot_handle *const fresh = handle.get();
  const verify::DeviceTensor a(fresh, FLYDSL_AOT_BF16, {16, 16}, {}, 0);
  const verify::DeviceTensor b(fresh, FLYDSL_AOT_BF16, {16, 16}, {}, 0);
  const verify::DeviceTensor d(fresh, FLYDSL_AOT_BF16, {16, 16}, {}, 0);
  flydsl_aot_gemm_params params{};
  params.struct_size = sizeof params;
  params.alpha = 1;
  params.a = a.tensor();
  params.b = b.tensor();
  params.d = d.tensor();
  hipStream_t stream = nullptr;
  EXPECT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  hipGraph_t graph = nullptr;
  ASSERT_EQ(api::hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
  EXPECT_EQ(flydsl_aot_gemm(fresh, &params, stream), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
  EXPECT_NE(std::string(flydsl_aot_last_error()).find("prefetch"), std::string::npos);
  EXPECT_EQ(api::hipStreamEndCapture(stream, &graph), hipSuccess);
  EXPECT_EQ(api::hipGraphDestroy(graph), hipSuccess);
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

}  // namespace
}  // namespace flydsl::test
