// A stream of the emulator's that its client made, and captures on it.
#pragma once

#include <functional>

#include "test/emulator/hip/client_api.h"

namespace flydsl::test {

using emu::test::find_function;
using emu::test::hip;

namespace api {
FLYDSL_HIP_FUNCTION(hipStreamBeginCapture, hipStream_t, hipStreamCaptureMode)
FLYDSL_HIP_FUNCTION(hipStreamEndCapture, hipStream_t, hipGraph_t *)
FLYDSL_HIP_FUNCTION(hipGraphGetNodes, hipGraph_t, hipGraphNode_t *, size_t *)
FLYDSL_HIP_FUNCTION(hipGraphInstantiate, hipGraphExec_t *, hipGraph_t, hipGraphNode_t *, char *,
                    size_t)
FLYDSL_HIP_FUNCTION(hipGraphLaunch, hipGraphExec_t, hipStream_t)
FLYDSL_HIP_FUNCTION(hipGraphExecDestroy, hipGraphExec_t)
FLYDSL_HIP_FUNCTION(hipGraphDestroy, hipGraph_t)
}  // namespace api

class Stream {
 public:
  Stream() { EXPECT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking)); }
  ~Stream() { EXPECT_HIP(hipSuccess, hipStreamDestroy(stream_)); }
  operator hipStream_t() const { return stream_; }

 private:
  hipStream_t stream_ = nullptr;
};

// What `work` gives to the stream, as a graph; *nodes: how many nodes it has.
inline hipGraphExec_t captured(hipStream_t stream, hipStreamCaptureMode mode,
                               const std::function<void()> &work, size_t *nodes) {
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  EXPECT_EQ(api::hipStreamBeginCapture(stream, mode), hipSuccess);
  work();
  EXPECT_EQ(api::hipStreamEndCapture(stream, &graph), hipSuccess);
  EXPECT_EQ(api::hipGraphGetNodes(graph, static_cast<hipGraphNode_t *>(nullptr), nodes),
            hipSuccess);
  EXPECT_EQ(api::hipGraphInstantiate(&exec, graph, static_cast<hipGraphNode_t *>(nullptr),
                                     static_cast<char *>(nullptr), size_t{0}),
            hipSuccess);
  EXPECT_EQ(api::hipGraphDestroy(graph), hipSuccess);
  return exec;
}

}  // namespace flydsl::test
