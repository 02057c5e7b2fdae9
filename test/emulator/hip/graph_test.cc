// Stream capture, what it forbids, and graphs.
#include <gtest/gtest.h>

#include <functional>

#include "test/emulator/hip/client_api.h"

namespace flydsl::emu::test {
namespace {

FLYDSL_HIP_FUNCTION(hipStreamBeginCapture, hipStream_t, hipStreamCaptureMode)
FLYDSL_HIP_FUNCTION(hipStreamEndCapture, hipStream_t, hipGraph_t *)
FLYDSL_HIP_FUNCTION(hipStreamGetCaptureInfo, hipStream_t, hipStreamCaptureStatus *,
                    unsigned long long *)
FLYDSL_HIP_FUNCTION(hipThreadExchangeStreamCaptureMode, hipStreamCaptureMode *)
FLYDSL_HIP_FUNCTION(hipLaunchHostFunc, hipStream_t, hipHostFn_t, void *)
FLYDSL_HIP_FUNCTION(hipGraphInstantiate, hipGraphExec_t *, hipGraph_t, hipGraphNode_t *, char *,
                    size_t)
FLYDSL_HIP_FUNCTION(hipGraphLaunch, hipGraphExec_t, hipStream_t)
FLYDSL_HIP_FUNCTION(hipGraphExecDestroy, hipGraphExec_t)
FLYDSL_HIP_FUNCTION(hipGraphCreate, hipGraph_t *, unsigned)
FLYDSL_HIP_FUNCTION(hipGraphDestroy, hipGraph_t)
FLYDSL_HIP_FUNCTION(hipGraphGetNodes, hipGraph_t, hipGraphNode_t *, size_t *)
FLYDSL_HIP_FUNCTION(hipGraphGetRootNodes, hipGraph_t, hipGraphNode_t *, size_t *)
FLYDSL_HIP_FUNCTION(hipGraphGetEdges, hipGraph_t, hipGraphNode_t *, hipGraphNode_t *, size_t *)
FLYDSL_HIP_FUNCTION(hipGraphNodeGetType, hipGraphNode_t, hipGraphNodeType *)
FLYDSL_HIP_FUNCTION(hipGraphNodeGetDependencies, hipGraphNode_t, hipGraphNode_t *, size_t *)
FLYDSL_HIP_FUNCTION(hipGraphAddKernelNode, hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *,
                    size_t, const hipKernelNodeParams *)
FLYDSL_HIP_FUNCTION(hipGraphAddMemsetNode, hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *,
                    size_t, const hipMemsetParams *)
FLYDSL_HIP_FUNCTION(hipGraphAddMemcpyNode1D, hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *,
                    size_t, void *, const void *, size_t, hipMemcpyKind)
FLYDSL_HIP_FUNCTION(hipGraphAddHostNode, hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *,
                    size_t, const hipHostNodeParams *)
FLYDSL_HIP_FUNCTION(hipGraphAddEmptyNode, hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *,
                    size_t)
FLYDSL_HIP_FUNCTION(hipGraphAddDependencies, hipGraph_t, const hipGraphNode_t *,
                    const hipGraphNode_t *, size_t)

constexpr uint32_t kCount = 128;

hipStream_t make_stream(unsigned flags = hipStreamNonBlocking) {
  hipStream_t stream = nullptr;
  EXPECT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream, flags));
  return stream;
}

hipModule_t load_module() {
  hipModule_t module = nullptr;
  EXPECT_HIP(hipSuccess, hipModuleLoad(&module, object_path("gfx950_v5.co").c_str()));
  return module;
}

void count_up(void *counter) {
  ++*static_cast<int *>(counter);
}

struct Adder {
  TestModule module;
  DeviceArray<float> ones{std::vector<float>(kCount, 1)}, sum{std::vector<float>(kCount, 0)};

  hipError_t launch(hipStream_t stream) {
    void *one = ones.get(), *out = sum.get();
    uint32_t count = kCount;
    void *arguments[] = {&one, &out, &out, &count};
    return hip().hipModuleLaunchKernel(module.function("vector_add"), 2, 1, 1, 64, 1, 1, 0, stream,
                                       arguments, nullptr);
  }
};

TEST(Capture, KernelCopyFillAndHostFunctionReplay) {
  Adder adder;
  const hipStream_t stream = make_stream();
  std::vector<float> result(kCount, -1);
  int calls = 0;
  ASSERT_CALL(hipSuccess, hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  unsigned long long id = 0;
  EXPECT_CALL(hipSuccess, hipStreamGetCaptureInfo(stream, &status, &id));
  EXPECT_EQ(status, hipStreamCaptureStatusActive);
  EXPECT_NE(id, 0u);
  EXPECT_HIP(hipSuccess, hipMemsetAsync(adder.sum.get(), 0, kCount * 4, stream));
  EXPECT_EQ(adder.launch(stream), hipSuccess);
  EXPECT_EQ(adder.launch(stream), hipSuccess);
  EXPECT_CALL(hipSuccess, hipLaunchHostFunc(stream, count_up, &calls));
  EXPECT_HIP(hipSuccess, hipMemcpyAsync(result.data(), adder.sum.get(), kCount * 4,
                                        hipMemcpyDeviceToHost, stream));
  hipGraph_t graph = nullptr;
  ASSERT_CALL(hipSuccess, hipStreamEndCapture(stream, &graph));
  EXPECT_HIP(hipSuccess, hipStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, hipStreamCaptureStatusNone);
  EXPECT_EQ(calls, 0) << "nothing ran";
  EXPECT_EQ(adder.sum.values(), std::vector<float>(kCount, 0));

  size_t count = 0;
  ASSERT_CALL(hipSuccess, hipGraphGetNodes(graph, static_cast<hipGraphNode_t *>(nullptr), &count));
  ASSERT_EQ(count, 5u);
  hipGraphNode_t nodes[7] = {};
  count = 7;
  ASSERT_CALL(hipSuccess, hipGraphGetNodes(graph, static_cast<hipGraphNode_t *>(nodes), &count));
  EXPECT_EQ(count, 5u);
  const hipGraphNodeType types[] = {hipGraphNodeTypeMemset, hipGraphNodeTypeKernel,
                                    hipGraphNodeTypeKernel, hipGraphNodeTypeHost,
                                    hipGraphNodeTypeMemcpy};
  for (int i = 0; i < 5; ++i) {
    hipGraphNodeType type = hipGraphNodeTypeEmpty;
    EXPECT_CALL(hipSuccess, hipGraphNodeGetType(nodes[i], &type));
    EXPECT_EQ(type, types[i]) << i;
    hipGraphNode_t before = nullptr;
    size_t before_count = 1;
    EXPECT_CALL(hipSuccess, hipGraphNodeGetDependencies(nodes[i], &before, &before_count));
    EXPECT_EQ(before, i == 0 ? nullptr : nodes[i - 1]);
  }
  count = 7;
  ASSERT_CALL(hipSuccess,
              hipGraphGetRootNodes(graph, static_cast<hipGraphNode_t *>(nodes), &count));
  EXPECT_EQ(count, 1u);
  count = 0;
  ASSERT_CALL(hipSuccess, hipGraphGetEdges(graph, static_cast<hipGraphNode_t *>(nullptr),
                                           static_cast<hipGraphNode_t *>(nullptr), &count));
  EXPECT_EQ(count, 4u);

  hipGraphExec_t exec = nullptr;
  ASSERT_CALL(hipSuccess, hipGraphInstantiate(&exec, graph, static_cast<hipGraphNode_t *>(nullptr),
                                              static_cast<char *>(nullptr), size_t{0}));
  EXPECT_CALL(hipSuccess, hipGraphDestroy(graph)) << "the executable graph is on its own";
  EXPECT_CALL(hipErrorInvalidValue, hipGraphDestroy(graph));
  for (int round = 1; round <= 3; ++round) {
    result.assign(kCount, -1);
    ASSERT_CALL(hipSuccess, hipGraphLaunch(exec, stream));
    ASSERT_HIP(hipSuccess, hipStreamSynchronize(stream));
    EXPECT_EQ(calls, round);
    EXPECT_EQ(result, std::vector<float>(kCount, 2));
  }
  EXPECT_CALL(hipSuccess, hipGraphExecDestroy(exec));
  EXPECT_CALL(hipErrorInvalidValue, hipGraphLaunch(exec, stream));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

TEST(Capture, EventsForkAndJoinStreams) {
  Adder adder;
  const hipStream_t origin = make_stream(), fork = make_stream();
  hipEvent_t forked = nullptr, joined = nullptr;
  ASSERT_HIP(hipSuccess, hipEventCreate(&forked));
  ASSERT_HIP(hipSuccess, hipEventCreate(&joined));
  hipGraph_t graph = nullptr;
  for (const bool join : {false, true}) {
    ASSERT_CALL(hipSuccess, hipStreamBeginCapture(origin, hipStreamCaptureModeGlobal));
    EXPECT_EQ(adder.launch(origin), hipSuccess);
    EXPECT_HIP(hipSuccess, hipEventRecord(forked, origin));
    EXPECT_HIP(hipSuccess, hipStreamWaitEvent(fork, forked, 0));
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    EXPECT_HIP(hipSuccess, hipStreamIsCapturing(fork, &status));
    EXPECT_EQ(status, hipStreamCaptureStatusActive);
    EXPECT_EQ(adder.launch(fork), hipSuccess);
    EXPECT_CALL(hipErrorStreamCaptureUnmatched, hipStreamEndCapture(fork, &graph));
    if (join) {
      EXPECT_HIP(hipSuccess, hipEventRecord(joined, fork));
      EXPECT_HIP(hipSuccess, hipStreamWaitEvent(origin, joined, 0));
      EXPECT_EQ(adder.launch(origin), hipSuccess);
    }
    EXPECT_CALL(join ? hipSuccess : hipErrorStreamCaptureUnjoined,
                hipStreamEndCapture(origin, &graph));
    EXPECT_EQ(graph != nullptr, join);
    EXPECT_HIP(hipSuccess, hipStreamIsCapturing(fork, &status));
    EXPECT_EQ(status, hipStreamCaptureStatusNone);
  }
  EXPECT_HIP(hipErrorCapturedEvent, hipEventQuery(joined));
  EXPECT_HIP(hipErrorCapturedEvent, hipEventSynchronize(joined));
  EXPECT_HIP(hipSuccess, hipEventRecord(joined, origin)) << "usable again";
  EXPECT_HIP(hipSuccess, hipEventSynchronize(joined));
  hipGraphExec_t exec = nullptr;
  ASSERT_CALL(hipSuccess, hipGraphInstantiate(&exec, graph, static_cast<hipGraphNode_t *>(nullptr),
                                              static_cast<char *>(nullptr), size_t{0}));
  ASSERT_CALL(hipSuccess, hipGraphLaunch(exec, fork));
  ASSERT_HIP(hipSuccess, hipStreamSynchronize(fork));
  EXPECT_EQ(adder.sum.values(), std::vector<float>(kCount, 3));
  EXPECT_CALL(hipSuccess, hipGraphExecDestroy(exec));
  EXPECT_CALL(hipSuccess, hipGraphDestroy(graph));
  for (const hipEvent_t event : {forked, joined}) EXPECT_HIP(hipSuccess, hipEventDestroy(event));
  for (const hipStream_t stream : {origin, fork}) EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

// What a capture forbids, each in a capture of its own.
TEST(Capture, ForbiddenCallsInvalidate) {
  void *memory = nullptr;
  ASSERT_HIP(hipSuccess, hipMalloc(&memory, 64));
  hipEvent_t outside = nullptr;
  ASSERT_HIP(hipSuccess, hipEventCreate(&outside));
  ASSERT_HIP(hipSuccess, hipEventRecord(outside, nullptr));
  const hipStream_t stream = make_stream(hipStreamDefault);
  hipModule_t module = nullptr;
  const struct {
    const char *name;
    hipError_t code;
    std::function<hipError_t()> call;
    bool thread_local_too, relaxed_too;
  } cases[] = {
      {"hipMalloc", hipErrorStreamCaptureUnsupported,
       [] {
         void *p = nullptr;
         const hipError_t error = hip().hipMalloc(&p, 16);
         if (p != nullptr) (void)hip().hipFree(p);
         return error;
       },
       true, false},
      {"hipDeviceSynchronize", hipErrorStreamCaptureUnsupported,
       [] { return hip().hipDeviceSynchronize(); }, true, true},
      {"hipModuleUnload", hipErrorStreamCaptureUnsupported,
       [&] {
         if (module == nullptr) module = load_module();
         const hipError_t error = hip().hipModuleUnload(module);
         if (error == hipSuccess) module = nullptr;
         return error;
       },
       true, false},
      {"hipStreamSynchronize", hipErrorStreamCaptureUnsupported,
       [=] { return hip().hipStreamSynchronize(stream); }, true, true},
      {"hipStreamQuery", hipErrorStreamCaptureUnsupported,
       [=] { return hip().hipStreamQuery(stream); }, true, true},
      {"hipMemset on the null stream", hipErrorStreamCaptureImplicit,
       [=] { return hip().hipMemset(memory, 0, 64); }, true, true},
      {"wait for work outside", hipErrorStreamCaptureIsolation,
       [=] { return hip().hipStreamWaitEvent(stream, outside, 0); }, true, true},
  };
  for (const auto mode :
       {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed})
    for (const auto &c : cases) {
      const bool refused =
          mode == hipStreamCaptureModeGlobal ||
          (mode == hipStreamCaptureModeThreadLocal ? c.thread_local_too : c.relaxed_too);
      hipGraph_t graph = nullptr;
      ASSERT_CALL(hipSuccess, hipStreamBeginCapture(stream, mode));
      EXPECT_EQ(c.call(), refused ? c.code : hipSuccess) << c.name << ", mode " << mode;
      hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
      EXPECT_HIP(hipSuccess, hipStreamIsCapturing(stream, &status));
      EXPECT_EQ(status, refused ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive)
          << c.name;
      EXPECT_CALL(refused ? hipErrorStreamCaptureInvalidated : hipSuccess,
                  hipStreamEndCapture(stream, &graph))
          << c.name;
      if (graph != nullptr) {
        EXPECT_CALL(hipSuccess, hipGraphDestroy(graph));
      }
    }
  EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream)) << "all is well again";
  EXPECT_HIP(hipSuccess, hipEventDestroy(outside));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
  EXPECT_HIP(hipSuccess, hipFree(memory));
}

TEST(Capture, OtherThreads) {
  const hipStream_t stream = make_stream();
  const auto allocate = [] {
    void *p = nullptr;
    const hipError_t error = hip().hipMalloc(&p, 16);
    if (p != nullptr) (void)hip().hipFree(p);
    return error;
  };
  hipGraph_t graph = nullptr;
  ASSERT_CALL(hipSuccess, hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  std::thread([&] {
    EXPECT_EQ(allocate(), hipSuccess) << "a thread-local capture is no concern of others";
    EXPECT_CALL(hipErrorStreamCaptureWrongThread, hipStreamEndCapture(stream, &graph));
  }).join();
  EXPECT_CALL(hipSuccess, hipStreamEndCapture(stream, &graph));
  EXPECT_CALL(hipSuccess, hipGraphDestroy(graph));

  ASSERT_CALL(hipSuccess, hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  std::thread([&] {
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    EXPECT_CALL(hipSuccess, hipThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, hipStreamCaptureModeGlobal);
    EXPECT_EQ(allocate(), hipSuccess);
    EXPECT_CALL(hipSuccess, hipThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, hipStreamCaptureModeRelaxed);
    EXPECT_EQ(allocate(), hipErrorStreamCaptureUnsupported);
  }).join();
  EXPECT_CALL(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(stream, &graph));

  ASSERT_CALL(hipSuccess, hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  std::thread([&] { EXPECT_CALL(hipSuccess, hipStreamEndCapture(stream, &graph)); }).join();
  EXPECT_CALL(hipSuccess, hipGraphDestroy(graph));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

TEST(Capture, Misuse) {
  const hipStream_t stream = make_stream();
  hipGraph_t graph = nullptr;
  EXPECT_CALL(hipErrorStreamCaptureUnsupported,
              hipStreamBeginCapture(hipStream_t{}, hipStreamCaptureModeGlobal));
  EXPECT_CALL(hipErrorIllegalState, hipStreamEndCapture(stream, &graph));
  ASSERT_CALL(hipSuccess, hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  EXPECT_CALL(hipErrorIllegalState, hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  EXPECT_HIP(hipErrorStreamCaptureUnsupported, hipStreamDestroy(stream));
  EXPECT_CALL(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(stream, &graph));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

TEST(Graph, BuiltByHand) {
  TestModule module;
  DeviceArray<float> a(std::vector<float>(kCount, 0)), out(std::vector<float>(kCount, 0));
  std::vector<float> result(kCount, -1);
  int calls = 0;
  hipGraph_t graph = nullptr;
  ASSERT_CALL(hipSuccess, hipGraphCreate(&graph, 0u));
  hipGraphNode_t fill = nullptr, kernel = nullptr, copy = nullptr, host = nullptr, empty = nullptr;
  constexpr const hipGraphNode_t *kNone = nullptr;
  // Added against their order, so that the edges must count.
  ASSERT_CALL(hipSuccess, hipGraphAddMemcpyNode1D(&copy, graph, kNone, size_t{0},
                                                  static_cast<void *>(result.data()),
                                                  static_cast<const void *>(out.get()),
                                                  size_t{kCount * 4}, hipMemcpyDeviceToHost));
  void *pa = a.get(), *pout = out.get();
  uint32_t count = kCount;
  void *arguments[] = {&pa, &pa, &pout, &count};
  const hipKernelNodeParams kernel_params = {{64, 1, 1}, nullptr,   module.function("vector_add"),
                                             {2, 1, 1},  arguments, 0};
  ASSERT_CALL(hipSuccess, hipGraphAddKernelNode(&kernel, graph, kNone, size_t{0}, &kernel_params));
  const hipMemsetParams fill_params = {a.get(), 4, 1, 0, 0x3f800000, kCount};
  ASSERT_CALL(hipSuccess, hipGraphAddMemsetNode(&fill, graph, kNone, size_t{0}, &fill_params));
  const hipHostNodeParams host_params = {count_up, &calls};
  ASSERT_CALL(hipSuccess,
              hipGraphAddHostNode(&host, graph, static_cast<const hipGraphNode_t *>(&copy),
                                  size_t{1}, &host_params));
  ASSERT_CALL(hipSuccess, hipGraphAddEmptyNode(&empty, graph, kNone, size_t{0}));
  const hipGraphNode_t from[] = {fill, kernel}, to[] = {kernel, copy};
  ASSERT_CALL(hipSuccess,
              hipGraphAddDependencies(graph, static_cast<const hipGraphNode_t *>(from),
                                      static_cast<const hipGraphNode_t *>(to), size_t{2}));
  hipGraphExec_t exec = nullptr;
  const auto instantiate = [&](char *log, size_t bytes) {
    return hipGraphInstantiate(&exec, graph, static_cast<hipGraphNode_t *>(nullptr), log, bytes);
  };
  ASSERT_CALL(hipSuccess, instantiate(nullptr, 0));
  ASSERT_CALL(hipSuccess, hipGraphLaunch(exec, hipStream_t{}));
  ASSERT_HIP(hipSuccess, hipDeviceSynchronize());
  EXPECT_EQ(result, std::vector<float>(kCount, 2));
  EXPECT_EQ(calls, 1);
  EXPECT_CALL(hipSuccess, hipGraphExecDestroy(exec));

  const hipGraphNode_t back[] = {host}, first[] = {fill};
  ASSERT_CALL(hipSuccess,
              hipGraphAddDependencies(graph, static_cast<const hipGraphNode_t *>(back),
                                      static_cast<const hipGraphNode_t *>(first), size_t{1}));
  char log[100] = {};
  EXPECT_CALL(hipErrorInvalidValue, instantiate(log, sizeof log));
  EXPECT_NE(std::string(log).find("circle"), std::string::npos) << log;
  hipGraphNode_t stranger = reinterpret_cast<hipGraphNode_t>(&calls), node = nullptr;
  EXPECT_CALL(hipErrorInvalidValue,
              hipGraphAddEmptyNode(&node, graph, static_cast<const hipGraphNode_t *>(&stranger),
                                   size_t{1}));
  EXPECT_CALL(hipSuccess, hipGraphDestroy(graph));
}

}  // namespace
}  // namespace flydsl::emu::test
