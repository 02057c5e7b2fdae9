// New parameters of graph nodes, and executable graphs updated from other graphs.
#include <gtest/gtest.h>

#include <cstring>

#include "test/emulator/hip/client_api.h"

namespace flydsl::emu::test {
namespace {

FLYDSL_HIP_FUNCTION(hipGraphCreate, hipGraph_t *, unsigned)
FLYDSL_HIP_FUNCTION(hipGraphDestroy, hipGraph_t)
FLYDSL_HIP_FUNCTION(hipGraphInstantiate, hipGraphExec_t *, hipGraph_t, hipGraphNode_t *, char *,
                    size_t)
FLYDSL_HIP_FUNCTION(hipGraphLaunch, hipGraphExec_t, hipStream_t)
FLYDSL_HIP_FUNCTION(hipGraphExecDestroy, hipGraphExec_t)
FLYDSL_HIP_FUNCTION(hipGraphAddKernelNode, hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *,
                    size_t, const hipKernelNodeParams *)
FLYDSL_HIP_FUNCTION(hipGraphAddMemsetNode, hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *,
                    size_t, const hipMemsetParams *)
FLYDSL_HIP_FUNCTION(hipGraphAddMemcpyNode, hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *,
                    size_t, const hipMemcpy3DParms *)
FLYDSL_HIP_FUNCTION(hipGraphAddHostNode, hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *,
                    size_t, const hipHostNodeParams *)
FLYDSL_HIP_FUNCTION(hipGraphKernelNodeSetParams, hipGraphNode_t, const hipKernelNodeParams *)
FLYDSL_HIP_FUNCTION(hipGraphMemsetNodeSetParams, hipGraphNode_t, const hipMemsetParams *)
FLYDSL_HIP_FUNCTION(hipGraphMemcpyNodeSetParams, hipGraphNode_t, const hipMemcpy3DParms *)
FLYDSL_HIP_FUNCTION(hipGraphMemcpyNodeSetParams1D, hipGraphNode_t, void *, const void *, size_t,
                    hipMemcpyKind)
FLYDSL_HIP_FUNCTION(hipGraphHostNodeSetParams, hipGraphNode_t, const hipHostNodeParams *)
FLYDSL_HIP_FUNCTION(hipGraphExecKernelNodeSetParams, hipGraphExec_t, hipGraphNode_t,
                    const hipKernelNodeParams *)
FLYDSL_HIP_FUNCTION(hipGraphExecMemsetNodeSetParams, hipGraphExec_t, hipGraphNode_t,
                    const hipMemsetParams *)
FLYDSL_HIP_FUNCTION(hipGraphExecMemcpyNodeSetParams, hipGraphExec_t, hipGraphNode_t,
                    hipMemcpy3DParms *)
FLYDSL_HIP_FUNCTION(hipGraphExecMemcpyNodeSetParams1D, hipGraphExec_t, hipGraphNode_t, void *,
                    const void *, size_t, hipMemcpyKind)
FLYDSL_HIP_FUNCTION(hipGraphExecHostNodeSetParams, hipGraphExec_t, hipGraphNode_t,
                    const hipHostNodeParams *)
FLYDSL_HIP_FUNCTION(hipGraphExecUpdate, hipGraphExec_t, hipGraph_t, hipGraphNode_t *,
                    hipGraphExecUpdateResult *)

constexpr uint32_t kCount = 128;
constexpr uint32_t kOne = 0x3f800000, kTwo = 0x40000000;  // floats
constexpr const hipGraphNode_t *kNone = nullptr;

void count_up(void *counter) {
  ++*static_cast<int *>(counter);
}

// fill a; out = a + a; result = out; a host function counts.
class GraphUpdate : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking));
    graph_ = build();
    exec_ = instantiate(graph_);
  }
  void TearDown() override {
    EXPECT_CALL(hipSuccess, hipGraphExecDestroy(exec_));
    EXPECT_CALL(hipSuccess, hipGraphDestroy(graph_));
    EXPECT_HIP(hipSuccess, hipStreamDestroy(stream_));
  }

  hipGraph_t build(bool host_first = false, bool kernel_after_fill = true, bool host = true) {
    hipGraph_t graph = nullptr;
    EXPECT_CALL(hipSuccess, hipGraphCreate(&graph, 0u));
    const hipHostNodeParams call = {count_up, &calls_};
    if (host_first) {
      EXPECT_CALL(hipSuccess, hipGraphAddHostNode(&host_, graph, kNone, size_t{0}, &call));
    }
    const hipMemsetParams fill = filled(kOne);
    EXPECT_CALL(hipSuccess, hipGraphAddMemsetNode(&fill_, graph, kNone, size_t{0}, &fill));
    const hipKernelNodeParams sum = added(a_.get());
    EXPECT_CALL(hipSuccess,
                hipGraphAddKernelNode(&kernel_, graph, static_cast<const hipGraphNode_t *>(&fill_),
                                      size_t{kernel_after_fill}, &sum));
    const hipMemcpy3DParms copy = copied(out_.get());
    EXPECT_CALL(hipSuccess,
                hipGraphAddMemcpyNode(&copy_, graph, static_cast<const hipGraphNode_t *>(&kernel_),
                                      size_t{1}, &copy));
    if (host && !host_first) {
      EXPECT_CALL(hipSuccess, hipGraphAddHostNode(&host_, graph, kNone, size_t{0}, &call));
    }
    return graph;
  }
  hipGraphExec_t instantiate(hipGraph_t graph) {
    hipGraphExec_t exec = nullptr;
    EXPECT_CALL(hipSuccess,
                hipGraphInstantiate(&exec, graph, static_cast<hipGraphNode_t *>(nullptr),
                                    static_cast<char *>(nullptr), size_t{0}));
    return exec;
  }
  // The float that the graph leaves in `result_`.
  float run(hipGraphExec_t exec) {
    result_.assign(kCount, -1);
    EXPECT_CALL(hipSuccess, hipGraphLaunch(exec, stream_));
    EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream_));
    EXPECT_EQ(result_, std::vector<float>(kCount, result_[0]));
    return result_[0];
  }

  hipMemsetParams filled(uint32_t value) { return {a_.get(), 4, 1, 0, value, kCount}; }
  hipKernelNodeParams added(void *second) {
    first_argument_ = a_.get();
    second_argument_ = second;
    out_argument_ = out_.get();
    return {{64, 1, 1}, nullptr, module_.function("vector_add"), {2, 1, 1}, arguments_, 0};
  }
  hipMemcpy3DParms copied(void *from) {
    hipMemcpy3DParms copy = {};
    copy.srcPtr = {from, kCount * 4, kCount * 4, 1};
    copy.dstPtr = {result_.data(), kCount * 4, kCount * 4, 1};
    copy.extent = {kCount * 4, 1, 1};
    copy.kind = hipMemcpyDeviceToHost;
    return copy;
  }

  TestModule module_;
  DeviceArray<float> a_{std::vector<float>(kCount, 0)}, tens_{std::vector<float>(kCount, 10)},
      out_{std::vector<float>(kCount, 0)};
  std::vector<float> result_ = std::vector<float>(kCount, -1);
  int calls_ = 0;
  void *first_argument_ = nullptr, *second_argument_ = nullptr, *out_argument_ = nullptr;
  uint32_t count_ = kCount;
  void *arguments_[4] = {&first_argument_, &second_argument_, &out_argument_, &count_};
  hipStream_t stream_ = nullptr;
  hipGraph_t graph_ = nullptr;
  hipGraphExec_t exec_ = nullptr;
  hipGraphNode_t fill_ = nullptr, kernel_ = nullptr, copy_ = nullptr, host_ = nullptr;
};

TEST_F(GraphUpdate, OfOneNodeOfAnExecutableGraph) {
  EXPECT_EQ(run(exec_), 2);
  const hipKernelNodeParams sum = added(tens_.get());
  ASSERT_CALL(hipSuccess, hipGraphExecKernelNodeSetParams(exec_, kernel_, &sum));
  EXPECT_EQ(run(exec_), 11);
  const hipMemsetParams fill = filled(kTwo);
  ASSERT_CALL(hipSuccess, hipGraphExecMemsetNodeSetParams(exec_, fill_, &fill));
  EXPECT_EQ(run(exec_), 12);
  hipMemcpy3DParms copy = copied(a_.get());
  ASSERT_CALL(hipSuccess, hipGraphExecMemcpyNodeSetParams(exec_, copy_, &copy));
  EXPECT_EQ(run(exec_), 2);
  ASSERT_CALL(hipSuccess,
              hipGraphExecMemcpyNodeSetParams1D(exec_, copy_, static_cast<void *>(result_.data()),
                                                static_cast<const void *>(tens_.get()),
                                                size_t{kCount * 4}, hipMemcpyDeviceToHost));
  EXPECT_EQ(run(exec_), 10);
  EXPECT_EQ(calls_, 5);
  int others = 0;
  const hipHostNodeParams call = {count_up, &others};
  ASSERT_CALL(hipSuccess, hipGraphExecHostNodeSetParams(exec_, host_, &call));
  EXPECT_EQ(run(exec_), 10);
  EXPECT_EQ(calls_, 5);
  EXPECT_EQ(others, 1);
  const hipGraphExec_t again = instantiate(graph_);
  EXPECT_EQ(run(again), 2) << "the graph is as it was";
  EXPECT_CALL(hipSuccess, hipGraphExecDestroy(again));
}

TEST_F(GraphUpdate, OfANodeOfAGraph) {
  const hipKernelNodeParams sum = added(tens_.get());
  ASSERT_CALL(hipSuccess, hipGraphKernelNodeSetParams(kernel_, &sum));
  const hipMemsetParams fill = filled(kTwo);
  ASSERT_CALL(hipSuccess, hipGraphMemsetNodeSetParams(fill_, &fill));
  int others = 0;
  const hipHostNodeParams call = {count_up, &others};
  ASSERT_CALL(hipSuccess, hipGraphHostNodeSetParams(host_, &call));
  EXPECT_EQ(run(exec_), 2) << "an executable graph is on its own";
  hipGraphExec_t exec = instantiate(graph_);
  EXPECT_EQ(run(exec), 12);
  EXPECT_EQ(others, 1);
  EXPECT_CALL(hipSuccess, hipGraphExecDestroy(exec));
  const hipMemcpy3DParms copy = copied(a_.get());
  ASSERT_CALL(hipSuccess, hipGraphMemcpyNodeSetParams(copy_, &copy));
  exec = instantiate(graph_);
  EXPECT_EQ(run(exec), 2);
  EXPECT_CALL(hipSuccess, hipGraphExecDestroy(exec));
  ASSERT_CALL(hipSuccess, hipGraphMemcpyNodeSetParams1D(copy_, static_cast<void *>(result_.data()),
                                                        static_cast<const void *>(tens_.get()),
                                                        size_t{kCount * 4}, hipMemcpyDeviceToHost));
  exec = instantiate(graph_);
  EXPECT_EQ(run(exec), 10);
  EXPECT_CALL(hipSuccess, hipGraphExecDestroy(exec));
}

TEST_F(GraphUpdate, RefusalsChangeNothing) {
  const hipMemsetParams fill = filled(kTwo);
  EXPECT_CALL(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(exec_, kernel_, &fill));
  EXPECT_NE(std::string(hip().flydsl_emu_last_error()).find("fill node for a kernel node"),
            std::string::npos)
      << hip().flydsl_emu_last_error();
  EXPECT_CALL(hipErrorInvalidValue, hipGraphMemsetNodeSetParams(kernel_, &fill));
  EXPECT_CALL(
      hipErrorInvalidValue,
      hipGraphExecMemsetNodeSetParams(exec_, fill_, static_cast<const hipMemsetParams *>(nullptr)));
  hipMemsetParams bad = fill;
  bad.width = 1 << 20;
  EXPECT_CALL(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(
                                        exec_, fill_, static_cast<const hipMemsetParams *>(&bad)));
  hipKernelNodeParams sum = added(tens_.get());
  sum.blockDim.x = 4096;
  EXPECT_NE(hipSuccess, hipGraphExecKernelNodeSetParams(
                            exec_, kernel_, static_cast<const hipKernelNodeParams *>(&sum)));
  int stranger = 0;
  EXPECT_CALL(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(
                                        exec_, reinterpret_cast<hipGraphNode_t>(&stranger), &fill));
  EXPECT_CALL(hipErrorInvalidValue,
              hipGraphExecMemsetNodeSetParams(hipGraphExec_t{}, fill_, &fill));
  EXPECT_CALL(hipErrorInvalidValue, hipGraphMemsetNodeSetParams(hipGraphNode_t{}, &fill));
  EXPECT_EQ(run(exec_), 2);
}

TEST_F(GraphUpdate, OfAWholeGraph) {
  const hipGraphNode_t first_kernel = kernel_;
  const hipGraph_t next = build();
  const hipKernelNodeParams sum = added(tens_.get());
  ASSERT_CALL(hipSuccess, hipGraphKernelNodeSetParams(kernel_, &sum));
  hipGraphNode_t node = kernel_;
  hipGraphExecUpdateResult result = hipGraphExecUpdateError;
  ASSERT_CALL(hipSuccess, hipGraphExecUpdate(exec_, next, &node, &result));
  EXPECT_EQ(result, hipGraphExecUpdateSuccess);
  EXPECT_EQ(node, nullptr);
  EXPECT_EQ(run(exec_), 11);
  EXPECT_CALL(hipSuccess, hipGraphDestroy(next));
  EXPECT_EQ(run(exec_), 11);
  const hipKernelNodeParams old = added(a_.get());
  EXPECT_CALL(hipSuccess, hipGraphExecKernelNodeSetParams(exec_, first_kernel, &old))
      << "its nodes keep the names of the graph it was made from";
  EXPECT_EQ(run(exec_), 2);

  const struct {
    const char *what;
    bool host_first, kernel_after_fill, host;
    hipGraphExecUpdateResult result;
    bool names_a_node;
  } changes[] = {
      {"types", true, true, true, hipGraphExecUpdateErrorNodeTypeChanged, true},
      {"edges", false, false, true, hipGraphExecUpdateErrorTopologyChanged, true},
      {"count", false, true, false, hipGraphExecUpdateErrorTopologyChanged, false},
  };
  for (const auto &change : changes) {
    SCOPED_TRACE(change.what);
    const hipGraph_t other = build(change.host_first, change.kernel_after_fill, change.host);
    EXPECT_CALL(hipErrorGraphExecUpdateFailure, hipGraphExecUpdate(exec_, other, &node, &result));
    EXPECT_EQ(result, change.result);
    EXPECT_EQ(node != nullptr, change.names_a_node);
    EXPECT_CALL(hipSuccess, hipGraphDestroy(other));
    EXPECT_EQ(run(exec_), 2);
  }
  EXPECT_CALL(hipErrorInvalidValue, hipGraphExecUpdate(exec_, hipGraph_t{}, &node, &result));
  EXPECT_EQ(result, hipGraphExecUpdateError);
}

TEST_F(GraphUpdate, LaunchInFlightKeepsItsParameters) {
  Gate gate;
  const hipHostNodeParams wait = {Gate::wait, &gate};
  ASSERT_CALL(hipSuccess, hipGraphExecHostNodeSetParams(exec_, host_, &wait));
  result_.assign(kCount, -1);
  ASSERT_CALL(hipSuccess, hipGraphLaunch(exec_, stream_));
  while (!gate.reached()) std::this_thread::yield();
  const hipMemsetParams fill = filled(kTwo);
  ASSERT_CALL(hipSuccess, hipGraphExecMemsetNodeSetParams(exec_, fill_, &fill));
  gate.open();
  ASSERT_HIP(hipSuccess, hipStreamSynchronize(stream_));
  EXPECT_EQ(result_[0], 2);
  EXPECT_EQ(run(exec_), 4);
}

}  // namespace
}  // namespace flydsl::emu::test
