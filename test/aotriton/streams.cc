#include "test/aotriton/streams.h"

#include <gtest/gtest.h>

#include "test/support/client_stream.h"

namespace flydsl::test {

ClientStream::ClientStream() {
  hipStream_t stream = nullptr;
  EXPECT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  stream_ = stream;
}

ClientStream::~ClientStream() {
  EXPECT_HIP(hipSuccess, hipStreamDestroy(static_cast<hipStream_t>(stream_)));
}

size_t ClientStream::capture(const std::function<void()> &work, int times,
                             const std::function<void(int time)> &before) {
  const auto stream = static_cast<hipStream_t>(stream_);
  size_t nodes = 0;
  hipGraphExec_t graph = captured(stream, hipStreamCaptureModeGlobal, work, &nodes);
  for (int time = 0; time < times; ++time) {
    EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
    before(time);
    EXPECT_EQ(api::hipGraphLaunch(graph, stream), hipSuccess);
  }
  EXPECT_EQ(api::hipGraphExecDestroy(graph), hipSuccess);
  return nodes;
}

}  // namespace flydsl::test
