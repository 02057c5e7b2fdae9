// grouped_gemm through the C ABI where lines of test/cases/grouped_gemm.txt do not reach: orders of calls, graphs, streams,
// strides that are 0, offsets that a stream has yet to write.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "test/emulator/hip/client_api.h"
#include "test/support/forced_library.h"
#include "test/support/library.h"
#include "tools/verify/grouped_gemm_verify.h"

namespace flydsl::test {
namespace {

using emu::test::hip;
using verify::DeviceTensor;
using verify::Elements;
using verify::GroupedGemmNumbers;
using verify::GroupedGemmResult;
using verify::GroupedGemmSpec;
using verify::Placement;

GroupedGemmSpec spec_of(const std::string &line) {
  return verify::parse_grouped_gemm_spec("case " + line);
}

Elements result_of(flydsl_aot_handle *handle, const GroupedGemmSpec &spec,
                   const GroupedGemmNumbers &numbers) {
  const GroupedGemmResult result = verify::call_grouped_gemm(handle, spec, numbers);
  EXPECT_EQ(result.status, FLYDSL_AOT_OK) << result.message;
  EXPECT_EQ(result.contradiction, "");
  EXPECT_EQ(result.stray_write, "");
  return result.d;
}
Elements result_of(flydsl_aot_handle *handle, const std::string &line) {
  const GroupedGemmSpec spec = spec_of(line);
  return result_of(handle, spec, verify::grouped_gemm_numbers(spec));
}

// ROCm/FlyDSL#317, #629, ROCm/aiter#4840: what a call gives does not depend on the calls before it.
TEST(GroupedGemmOrderOfCalls, flydsl_317_each_as_if_alone) {
  std::vector<std::string> lines;
  const std::string rows = "axis=rows m=200 n=72 k=", k = "axis=k m=72 n=40 k=200 ";
  for (const char *size : {"64 ", "72 ", "33 "}) {
    for (const char *place : {"tight", "pitch:8", "pitch:1", "offset:4"}) {
      for (const char *offsets : {"70,200", "0,0,130"})
        lines.push_back(rows + size + "b_order=nk offsets=" + offsets + " a_place=" + place +
                        " b_place=" + place);
    }
  }
  lines.insert(lines.end(), {rows + "64 offsets=70,200", rows + "64 offsets=70,200 dtype=fp16",
                             k + "offsets=90,200 a_order=km", k + "offsets=90,200",
                             "axis=columns m=72 n=200 k=40 offsets=70,200",
                             "axis=none groups=3 m=72 n=40 k=64 b_order=nk"});
  for (const char *scales : {"plain", "shuffled"}) {
    for (const char *of : {"dtype=e4m3 k=256", "dtype=e5m2 k=384", "dtype=e4m3 b_dtype=e5m2 k=96"})
      lines.push_back("axis=rows m=200 n=72 b_order=nk offsets=70,200 scales=" +
                      std::string(scales) + " " + of);
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

// A group's rows are what they are without the other groups, bit for bit.
TEST(GroupedGemmGroups, EachAsIfAlone) {
  const GroupedGemmSpec together =
      spec_of("axis=rows m=300 n=136 k=264 offsets=70,70,300 b_order=nk");
  const GroupedGemmNumbers numbers = verify::grouped_gemm_numbers(together);
  const Elements all = result_of(emulator(), together, numbers);
  for (size_t group = 0; group < 3; ++group) {
    GroupedGemmSpec alone = together;
    const int64_t begin = group == 0 ? 0 : together.offsets[group - 1];
    for (size_t other = 0; other < 3; ++other)
      alone.offsets[other] = other < group ? 0 : together.offsets[group] - begin;
    GroupedGemmNumbers own = numbers;
    const auto first = static_cast<std::ptrdiff_t>(begin * together.k);
    std::rotate(own.a.bits.begin(), own.a.bits.begin() + first, own.a.bits.end());
    const Elements result = result_of(emulator(), alone, own);
    for (int64_t at = 0; at < alone.offsets[group] * together.n; ++at)
      ASSERT_EQ(result.bits[static_cast<size_t>(at)],
                all.bits[static_cast<size_t>(begin * together.n + at)])
          << group << " " << at;
  }
}

// The size of tiles does not matter: those for large problems give the bits that those of small ones do.
TEST(GroupedGemmTiles, LargeOnesOnSmallProblems) {
  const auto forced = [](const char *tile) {
    return open_forced(
        "grouped_gemm",
        {"bf16_kk", "fp16_kr", "e4m3", "e4m3_shuffled", "e5m2_e4m3", "e4m3_e5m2_shuffled", "e5m2"},
        tile);
  };
  const OwnedHandle large = forced("m256n256"), small = forced("m128n128");
  const std::string rows = "axis=rows m=600 n=264 offsets=33,35,67,331,590 nan_outside=yes ";
  for (const std::string &line :
       {rows + "b_order=nk k=200", rows + "dtype=fp16 k=712", rows + "b_order=nk dtype=e4m3 k=512",
        rows + "b_order=nk dtype=e4m3 scales=shuffled k=384",
        rows + "b_order=nk dtype=e5m2 b_dtype=e4m3 a=bits b=bits k=256 out=fp16",
        rows + "b_order=nk dtype=e4m3 b_dtype=e5m2 scales=shuffled k=640 out=fp32",
        rows + "b_order=nk dtype=e5m2 k=256 bias_dtype=bf16 bias_axes=gn",
        rows + "b_order=nk dtype=e4m3 scales=shuffled k=128 d_order=nm",
        std::string("axis=columns m=300 n=264 k=256 offsets=70,200,230 b_order=nk dtype=e5m2"),
        std::string("axis=none groups=130 m=64 n=300 k=256 b_order=nk dtype=e4m3")}) {
    const GroupedGemmSpec spec = spec_of(line);
    const GroupedGemmNumbers numbers = verify::grouped_gemm_numbers(spec);
    EXPECT_EQ(result_of(large.get(), spec, numbers).bits,
              result_of(small.get(), spec, numbers).bits)
        << line;
  }
}

// A case's operands in memory, as its line orders their axes, and its call.
class OnDevice {
 public:
  OnDevice(flydsl_aot_handle *handle, const GroupedGemmSpec &spec)
      : handle_(handle),
        a_(handle, spec.a.dtype, sizes(spec, spec.a_has_groups(), spec.m, spec.k),
           order(spec.a.swapped, spec.a_has_groups()), 0xffff),
        b_(handle, spec.b.dtype, sizes(spec, spec.b_has_groups(), spec.k, spec.n),
           order(spec.b.swapped, spec.b_has_groups()), 0xffff),
        d_(handle, spec.d_dtype, sizes(spec, spec.d_has_groups(), spec.m, spec.n), {},
           verify::kOutputPoison),
        offsets_(handle, spec.wide_offsets ? FLYDSL_AOT_INT64 : FLYDSL_AOT_INT32, {spec.groups}, {},
                 0) {
    params.struct_size = sizeof params;
    params.a = a_.tensor();
    params.b = b_.tensor();
    params.d = d_.tensor();
    if (spec.axis != verify::SharedAxis::kNone) params.offsets = offsets_.tensor();
    put(spec);
  }
  // Other numbers and offsets; the poison of d.
  void put(const GroupedGemmSpec &spec) {
    const GroupedGemmNumbers numbers = verify::grouped_gemm_numbers(spec);
    numbers.a.put(a_);
    numbers.b.put(b_);
    Elements offsets(offsets_.tensor().dtype, 0);
    offsets.bits.assign(spec.offsets.begin(), spec.offsets.end());
    if (params.offsets.rank) offsets.put(offsets_);
    d_.upload();
  }
  void call(hipStream_t stream) {
    EXPECT_EQ(flydsl_aot_grouped_gemm(handle_, &params, stream), FLYDSL_AOT_OK)
        << flydsl_aot_last_error();
  }
  Elements result() { return Elements::taken_from(d_); }
  bool untouched() {
    result();
    return d_.untouched();
  }

  flydsl_aot_grouped_gemm_params params{};

 private:
  static std::vector<int64_t> sizes(const GroupedGemmSpec &spec, bool has_groups, int64_t rows,
                                    int64_t columns) {
    return has_groups ? std::vector<int64_t>{spec.groups, rows, columns}
                      : std::vector<int64_t>{rows, columns};
  }
  static Placement order(bool swapped, bool has_groups) {
    Placement placement;
    if (swapped) placement.order = has_groups ? std::vector<int>{0, 2, 1} : std::vector<int>{1, 0};
    return placement;
  }

  flydsl_aot_handle *handle_;
  DeviceTensor a_, b_, d_, offsets_;
};

class Stream {
 public:
  Stream() { EXPECT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking)); }
  ~Stream() { EXPECT_HIP(hipSuccess, hipStreamDestroy(stream_)); }
  operator hipStream_t() const { return stream_; }

 private:
  hipStream_t stream_ = nullptr;
};

namespace api {
using emu::test::find_function;
FLYDSL_HIP_FUNCTION(hipLaunchHostFunc, hipStream_t, hipHostFn_t, void *)
FLYDSL_HIP_FUNCTION(hipStreamBeginCapture, hipStream_t, hipStreamCaptureMode)
FLYDSL_HIP_FUNCTION(hipStreamEndCapture, hipStream_t, hipGraph_t *)
FLYDSL_HIP_FUNCTION(hipGraphGetNodes, hipGraph_t, hipGraphNode_t *, size_t *)
FLYDSL_HIP_FUNCTION(hipGraphInstantiate, hipGraphExec_t *, hipGraph_t, hipGraphNode_t *, char *,
                    size_t)
FLYDSL_HIP_FUNCTION(hipGraphLaunch, hipGraphExec_t, hipStream_t)
FLYDSL_HIP_FUNCTION(hipGraphExecDestroy, hipGraphExec_t)
FLYDSL_HIP_FUNCTION(hipGraphDestroy, hipGraph_t)
}  // namespace api

// Captures the call of the first line on a fresh handle, then replays it with the numbers and offsets of each.
void capture_and_replay(const std::vector<std::string> &lines) {
  const std::unique_ptr<flydsl_aot_handle, decltype(&flydsl_aot_close)> handle(open_emulator(),
                                                                               flydsl_aot_close);
  OnDevice on_device(handle.get(), spec_of(lines[0]));
  const Stream stream;
  hipGraph_t graph = nullptr;
  size_t nodes = 0;
  // A first use within a capture is refused, says what to call, and the capture goes on.
  ASSERT_EQ(api::hipStreamBeginCapture(hipStream_t{stream}, hipStreamCaptureModeGlobal),
            hipSuccess);
  EXPECT_EQ(flydsl_aot_grouped_gemm(handle.get(), &on_device.params, stream),
            FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
  EXPECT_NE(std::string(flydsl_aot_last_error()).find("prefetch"), std::string::npos);
  ASSERT_EQ(api::hipStreamEndCapture(hipStream_t{stream}, &graph), hipSuccess);
  EXPECT_EQ(api::hipGraphDestroy(graph), hipSuccess);

  ASSERT_EQ(flydsl_aot_grouped_gemm_prefetch(handle.get(), &on_device.params), FLYDSL_AOT_OK);
  ASSERT_EQ(api::hipStreamBeginCapture(hipStream_t{stream}, hipStreamCaptureModeGlobal),
            hipSuccess);
  on_device.call(stream);
  ASSERT_EQ(api::hipStreamEndCapture(hipStream_t{stream}, &graph), hipSuccess);
  EXPECT_EQ(api::hipGraphGetNodes(graph, static_cast<hipGraphNode_t *>(nullptr), &nodes),
            hipSuccess);
  EXPECT_EQ(nodes, 1u);
  hipGraphExec_t exec = nullptr;
  ASSERT_EQ(api::hipGraphInstantiate(&exec, graph, static_cast<hipGraphNode_t *>(nullptr),
                                     static_cast<char *>(nullptr), size_t{0}),
            hipSuccess);
  EXPECT_EQ(api::hipGraphDestroy(graph), hipSuccess);
  ASSERT_EQ(flydsl_aot_device_synchronize(handle.get()), FLYDSL_AOT_OK);
  EXPECT_TRUE(on_device.untouched()) << "a capture runs nothing";
  for (const std::string &line : lines) {
    on_device.put(spec_of(line));
    ASSERT_EQ(api::hipGraphLaunch(exec, hipStream_t{stream}), hipSuccess);
    ASSERT_EQ(flydsl_aot_device_synchronize(handle.get()), FLYDSL_AOT_OK);
    EXPECT_EQ(on_device.result().bits, result_of(emulator(), line).bits) << line;
  }
  EXPECT_EQ(api::hipGraphExecDestroy(exec), hipSuccess);
}

TEST(GroupedGemmGraph, ReplaysWithTheOffsetsThatAreInMemoryThen) {
  const std::string rows = "axis=rows m=300 n=136 k=72 b_order=nk ";
  capture_and_replay({rows + "offsets=0,0,0,0", rows + "offsets=70,200,200,300 seed=2",
                      rows + "offsets=1,2,3,290 seed=3", rows + "offsets=300,300,300,300 seed=4",
                      rows + "offsets=90,-7,2147483647,100 seed=5"});
  const std::string k = "axis=k m=264 n=136 k=400 a_order=km offsets_dtype=int64 ";
  capture_and_replay({k + "offsets=400,400,400", k + "offsets=0,0,0 seed=2",
                      k + "offsets=3,390,9223372036854775807 seed=3"});
  const std::string columns = "axis=columns m=72 n=200 k=33 ";
  capture_and_replay({columns + "offsets=70,200", columns + "offsets=0,150 seed=2"});
}

// The host does not know the offsets when it calls: what is copied to the device before the kernel runs is what counts.
TEST(GroupedGemmStreams, OffsetsThatTheStreamHasYetToWrite) {
  const std::string line = "axis=rows m=300 n=136 k=72 b_order=nk ";
  const std::string later = line + "offsets=70,200,260";
  OnDevice on_device(emulator(), spec_of(line + "offsets=1000000,-1000000,7"));
  on_device.call(nullptr);  // loads the kernel
  on_device.put(spec_of(line + "offsets=1000000,-1000000,7"));
  const Stream stream;
  emu::test::Gate gate;
  int32_t *offsets = nullptr;
  ASSERT_EQ(hipSuccess, hip().hipHostMalloc(reinterpret_cast<void **>(&offsets), 12, 0));
  ASSERT_EQ(hipSuccess, api::hipLaunchHostFunc(hipStream_t{stream}, &emu::test::Gate::wait,
                                               static_cast<void *>(&gate)));
  EXPECT_HIP(hipSuccess, hipMemcpyAsync(on_device.params.offsets.data, offsets, 12,
                                        hipMemcpyHostToDevice, stream));
  on_device.call(stream);
  const std::vector<int64_t> values = spec_of(later).offsets;
  std::copy(values.begin(), values.end(), offsets);
  gate.open();
  EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
  EXPECT_EQ(on_device.result().bits, result_of(emulator(), later).bits);
  EXPECT_HIP(hipSuccess, hipHostFree(offsets));
}

// Dao-AILab/flash-attention#2244: calls on several streams at once, of the same kernel and of others, from one handle.
TEST(GroupedGemmStreams, CallsAtOnceDoNotMeet) {
  const std::string lines[] = {
      "axis=rows m=700 n=264 k=136 offsets=70,70,300,650 b_order=nk",
      "axis=rows m=700 n=264 k=136 offsets=500,510,520,700 b_order=nk seed=2",
      "axis=k m=264 n=136 k=700 offsets=130,130,400,690 a_order=km",
      "axis=columns m=136 n=300 k=71 offsets=70,200,290 dtype=fp16"};
  constexpr int kCalls = 3;
  std::vector<std::vector<std::unique_ptr<OnDevice>>> work(std::size(lines));
  for (size_t i = 0; i < std::size(lines); ++i) {
    for (int call = 0; call < kCalls; ++call)
      work[i].push_back(std::make_unique<OnDevice>(emulator(), spec_of(lines[i])));
  }
  std::vector<std::unique_ptr<Stream>> streams;
  emu::test::Gate gate;  // every stream has all of its calls before one of them runs
  for (size_t i = 0; i < std::size(lines); ++i) {
    streams.push_back(std::make_unique<Stream>());
    ASSERT_EQ(hipSuccess, api::hipLaunchHostFunc(hipStream_t{*streams[i]}, &emu::test::Gate::wait,
                                                 static_cast<void *>(&gate)));
  }
  for (int call = 0; call < kCalls; ++call)
    for (size_t i = 0; i < std::size(lines); ++i)
      work[i][static_cast<size_t>(call)]->call(*streams[i]);
  gate.open();
  for (const auto &stream : streams) EXPECT_HIP(hipSuccess, hipStreamSynchronize(*stream));
  for (size_t i = 0; i < std::size(lines); ++i) {
    const Elements alone = result_of(emulator(), lines[i]);
    for (const auto &call : work[i]) EXPECT_EQ(call->result().bits, alone.bits) << lines[i];
  }
}

// Strides that are 0: the same row, weight or matrix for all. Sums of small integers, which every kernel forms alike.
TEST(GroupedGemmStrides, Zero) {
  struct Case {
    const char *line;
    flydsl_aot_tensor flydsl_aot_grouped_gemm_params::*operand;
    int axis;
  };
  using Params = flydsl_aot_grouped_gemm_params;
  const std::string integers = " a=int b=int out=fp32";
  const std::string rows = "axis=rows m=300 n=136 k=72 offsets=70,70,290 b_order=nk" + integers,
                    k = "axis=k m=264 n=136 k=304 offsets=90,90,300 a_order=km" + integers,
                    none = "axis=none groups=3 m=140 n=136 k=72 b_order=nk" + integers;
  const Case cases[] = {
      {rows.c_str(), &Params::a, 0}, {rows.c_str(), &Params::a, 1}, {rows.c_str(), &Params::b, 0},
      {rows.c_str(), &Params::b, 1}, {rows.c_str(), &Params::b, 2}, {k.c_str(), &Params::a, 0},
      {k.c_str(), &Params::a, 1},    {k.c_str(), &Params::b, 0},    {k.c_str(), &Params::b, 1},
      {none.c_str(), &Params::a, 0}, {none.c_str(), &Params::a, 1}, {none.c_str(), &Params::b, 0}};
  for (const Case &c : cases) {
    SCOPED_TRACE(std::string(c.line) + (c.operand == &Params::a ? ", a" : ", b") + " axis " +
                 std::to_string(c.axis));
    const GroupedGemmSpec spec = spec_of(c.line);
    GroupedGemmNumbers numbers = verify::grouped_gemm_numbers(spec);
    OnDevice on_device(emulator(), spec);
    flydsl_aot_tensor &view = on_device.params.*c.operand;
    view.strides[c.axis] = 0;
    on_device.call(nullptr);
    // What index 0 of the axis has, everywhere.
    Elements &elements = c.operand == &Params::a ? numbers.a : numbers.b;
    int64_t below = 1;
    for (int axis = c.axis + 1; axis < view.rank; ++axis) below *= view.sizes[axis];
    for (size_t at = 0; at < elements.bits.size(); ++at) {
      const int64_t index = static_cast<int64_t>(at) / below % view.sizes[c.axis];
      elements.bits[at] = elements.bits[at - static_cast<size_t>(index * below)];
    }
    EXPECT_EQ(verify::judge_grouped_gemm(spec, numbers, on_device.result(), nullptr), "");
  }
}

// Offsets with any stride, 0 among them, between numbers that are none: 0 is one end for all of the groups.
TEST(GroupedGemmStrides, OfOffsets) {
  for (const char *dtype : {"int32", "int64"}) {
    for (const int64_t stride : {0, 2, 5}) {
      SCOPED_TRACE(std::string(dtype) + ", stride " + std::to_string(stride));
      GroupedGemmSpec spec =
          spec_of("axis=rows m=300 n=136 k=72 offsets=70,70,290 b_order=nk offsets_dtype=" +
                  std::string(dtype));
      if (stride == 0) spec.offsets = {70, 70, 70};
      OnDevice on_device(emulator(), spec);
      DeviceTensor memory(emulator(), on_device.params.offsets.dtype, {2 * stride + 1}, {}, 0);
      Elements offsets(memory.tensor().dtype, static_cast<size_t>(2 * stride + 1));
      offsets.bits.assign(offsets.bits.size(), 123);
      for (size_t group = 0; group < 3; ++group)
        offsets.bits[group * static_cast<size_t>(stride)] =
            static_cast<uint64_t>(spec.offsets[group]);
      offsets.put(memory);
      on_device.params.offsets.data = memory.tensor().data;
      on_device.params.offsets.strides[0] = stride;
      on_device.call(nullptr);
      EXPECT_EQ(verify::judge_grouped_gemm(spec, verify::grouped_gemm_numbers(spec),
                                           on_device.result(), nullptr),
                "");
    }
  }
}

// pytorch/pytorch#192497, NVIDIA/cutlass#1593, NVIDIA/TransformerEngine#3019: empty operands, without memory, of any strides.
TEST(GroupedGemmEmpty, pytorch_192497_sizes_that_are_0) {
  const std::pair<int64_t, int64_t> strides[] = {{1, 1}, {0, 1}, {1, 0}, {256, 1}, {7, 3}};
  for (const auto &[outer, inner] : strides) {
    for (const bool bias : {false, true}) {
      SCOPED_TRACE(std::to_string(outer) + ", " + std::to_string(inner) + (bias ? ", bias" : ""));
      DeviceTensor d(emulator(), FLYDSL_AOT_BF16, {224, 256}, {}, 0x7fc1);
      DeviceTensor offsets(emulator(), FLYDSL_AOT_INT32, {4}, {}, 0);
      DeviceTensor threes(emulator(), FLYDSL_AOT_BF16, {4, 256}, {}, 0x4040);
      flydsl_aot_grouped_gemm_params params{};
      params.struct_size = sizeof params;
      params.a = {nullptr, FLYDSL_AOT_BF16, 2, {224, 0}, {outer, inner}};
      params.b = {nullptr, FLYDSL_AOT_BF16, 3, {4, 0, 256}, {outer, inner, inner}};
      params.d = d.tensor();
      params.offsets = offsets.tensor();
      if (bias) params.bias = threes.tensor();
      const auto run = [&](const std::vector<uint32_t> &ends) {
        offsets.set(ends);
        d.upload();
        EXPECT_EQ(flydsl_aot_grouped_gemm(emulator(), &params, nullptr), FLYDSL_AOT_OK)
            << flydsl_aot_last_error();
        EXPECT_EQ(flydsl_aot_device_synchronize(emulator()), FLYDSL_AOT_OK)
            << flydsl_aot_last_error();
        return d.get<uint16_t>();
      };
      // No rows in any group; then 100 of them, which are sums of nothing.
      run({0, 0, 0, 0});
      EXPECT_TRUE(d.untouched());
      const std::vector<uint16_t> result = run({0, 60, 60, 100});
      for (size_t at = 0; at < result.size(); ++at)
        ASSERT_EQ(result[at], at >= 100 * 256 ? 0x7fc1 : bias ? 0x4040 : 0) << at;

      // K 0 of groups along K: all of d is 0, or the bias.
      DeviceTensor gradient(emulator(), FLYDSL_AOT_BF16, {4, 40, 256}, {}, 0x7fc1);
      params.a = {nullptr, FLYDSL_AOT_BF16, 2, {40, 0}, {outer, inner}};
      params.b = {nullptr, FLYDSL_AOT_BF16, 2, {0, 256}, {outer, inner}};
      params.d = gradient.tensor();
      run({0, 0, 7, 7});
      for (const uint16_t bits : gradient.get<uint16_t>()) ASSERT_EQ(bits, bias ? 0x4040 : 0);

      // No columns.
      params.a = {nullptr, FLYDSL_AOT_BF16, 2, {0, 64}, {outer, inner}};
      params.b = {nullptr, FLYDSL_AOT_BF16, 3, {4, 64, 0}, {outer, inner, inner}};
      params.d = {nullptr, FLYDSL_AOT_BF16, 2, {0, 0}, {outer, inner}};
      params.bias = {};
      run({0, 0, 0, 0});
    }
  }
}

}  // namespace
}  // namespace flydsl::test
