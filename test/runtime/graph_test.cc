// Every operator captured into a graph: nothing that a capture forbids is called meanwhile, and a replay on other numbers in the same
// memory gives the bits of a call. (Public reports: B59.)
#include <thread>

#include "test/support/between_handle.h"
#include "test/support/client_stream.h"
#include "test/support/operator_problems.h"

namespace flydsl::test {
namespace {

class Graph : public ::testing::TestWithParam<ProblemLine> {};

TEST_P(Graph, B59_CapturesAndReplays) {
  HipBetween *between = open_hip_between(HIP_BETWEEN, FLYDSL_EMULATOR_LIBRARY);
  ASSERT_NE(between, nullptr);
  between->reset();
  tools::LibraryHandle memory;
  memory.open({"emulator", "", ""});
  DeviceProblem problem(memory, GetParam());
  for (const hipStreamCaptureMode mode :
       {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed}) {
    SCOPED_TRACE(mode);
    const Handle handle = open_between();
    const Stream stream;
    size_t nodes = 0;
    // The first use of a kernel: refused, and the capture goes on.
    hipGraphExec_t graph = captured(
        stream, mode,
        [&] { EXPECT_EQ(problem.launch(handle.get(), stream), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH); },
        &nodes);
    EXPECT_EQ(nodes, 0u);
    EXPECT_EQ(api::hipGraphExecDestroy(graph), hipSuccess);
    EXPECT_EQ(between->calls[kModuleLoadData], 0);

    ASSERT_EQ(problem.prefetch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    between->reset();
    graph = captured(
        stream, mode,
        [&] {
          EXPECT_EQ(problem.launch(handle.get(), stream), FLYDSL_AOT_OK) << flydsl_aot_last_error();
        },
        &nodes);
    EXPECT_EQ(nodes, static_cast<size_t>(GetParam().launches));
    EXPECT_EQ(between->calls[kModuleLaunchKernel], GetParam().launches);
    for (const HipCall forbidden : {kModuleLoadData, kModuleUnload, kModuleGetFunction, kMalloc,
                                    kFree, kMemcpy, kDeviceSynchronize, kSetDevice}) {
      EXPECT_EQ(between->calls[forbidden], 0) << between->name(forbidden);
    }
    EXPECT_TRUE(problem.outputs_are_poison()) << "a capture runs nothing";
    std::vector<std::vector<uint8_t>> before;
    for (unsigned turn = 0; turn < 3; ++turn) {
      problem.change_inputs(turn);
      problem.poison();
      ASSERT_EQ(api::hipGraphLaunch(graph, static_cast<hipStream_t>(stream)), hipSuccess);
      const auto replayed = problem.results();
      problem.poison();
      ASSERT_EQ(problem.launch(memory.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
      EXPECT_EQ(replayed, problem.results());
      EXPECT_NE(replayed, before) << "the same whatever the inputs are";
      before = replayed;
    }
    EXPECT_EQ(api::hipGraphExecDestroy(graph), hipSuccess);
    problem.poison();
    between->reset();
  }
}

// What happens elsewhere meanwhile does not end a capture: first uses on another stream, beyond a limit on loaded kernels too, prefetch,
// handles that are closed.
TEST(OneStreamsCapture, GoesOnWhateverOthersDo) {
  ASSERT_NE(open_hip_between(HIP_BETWEEN, FLYDSL_EMULATOR_LIBRARY), nullptr);
  tools::LibraryHandle memory;
  memory.open({"emulator", "", ""});
  const auto &lines = operator_problems();
  DeviceProblem captured_one(memory, lines.front()), first(memory, lines[lines.size() - 1]),
      second(memory, lines[lines.size() - 2]);
  for (const hipStreamCaptureMode mode :
       {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed}) {
    for (const bool same_thread : {true, false}) {
      SCOPED_TRACE(std::to_string(mode) + (same_thread ? ", the same thread" : ", another thread"));
      const Handle handle = open_between(nullptr, 1);
      Handle other = open_between();
      ASSERT_EQ(first.prefetch(other.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
      ASSERT_EQ(captured_one.prefetch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
      const Stream stream, elsewhere;
      const auto others = [&] {
        EXPECT_EQ(first.launch(handle.get(), elsewhere), FLYDSL_AOT_OK) << flydsl_aot_last_error();
        EXPECT_EQ(second.prefetch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
        other.reset();
      };
      size_t nodes = 0;
      hipGraphExec_t graph = captured(
          stream, mode,
          [&] {
            for (int call = 0; call < 2; ++call) {
              EXPECT_EQ(captured_one.launch(handle.get(), stream), FLYDSL_AOT_OK)
                  << flydsl_aot_last_error();
              if (call == 0 && same_thread) others();
              if (call == 0 && !same_thread) std::thread(others).join();
            }
          },
          &nodes);
      EXPECT_EQ(nodes, static_cast<size_t>(2 * lines.front().launches));
      captured_one.poison();
      ASSERT_EQ(api::hipGraphLaunch(graph, static_cast<hipStream_t>(stream)), hipSuccess);
      const auto replayed = captured_one.results();
      captured_one.poison();
      ASSERT_EQ(captured_one.launch(memory.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
      EXPECT_EQ(replayed, captured_one.results());
      EXPECT_EQ(api::hipGraphExecDestroy(graph), hipSuccess);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Graph, ::testing::ValuesIn(operator_problems()),
                         [](const auto &info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(OtherWays, Graph, ::testing::ValuesIn(other_ways()),
                         [](const auto &info) { return std::string(info.param.name); });

}  // namespace
}  // namespace flydsl::test
