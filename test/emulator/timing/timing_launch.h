// Micro-kernels under the timing model: assembled, run and recorded by the engine, then simulated
// on one compute unit whose memory answers after a fixed time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/timing/compute_unit.h"
#include "emulator/timing/costs.h"
#include "emulator/timing/record.h"
#include "test/emulator/support/launch.h"

namespace flydsl::emu::test {

class FixedLatency : public timing::MemoryPort {
 public:
  double vector_latency = 500, scalar_latency = 200, fetch_latency = 0;
  std::vector<double> requests;  // clocks of vector requests

  double vector(double clock, const timing::RequestOrigin &, const timing::MemoryUse &,
                const uint64_t *) override {
    requests.push_back(clock);
    return clock + vector_latency;
  }
  double scalar(double clock, const timing::RequestOrigin &, const timing::MemoryUse &,
                const uint64_t *) override {
    return clock + scalar_latency;
  }
  double fetch(double clock, uint64_t) override { return clock + fetch_latency; }
};

class TimingLaunch : public Launch {
 protected:
  // Records the work-groups of a launch of `assembly`.
  std::vector<timing::GroupTrace> record(const std::string &assembly, uint32_t waves = 1,
                                         uint32_t groups = 1) {
    build(assembly, 1 << 16);
    kernel_.lds_bytes = 65536;
    dispatch_.block[0] = waves * 64;
    dispatch_.grid[0] = groups;
    std::vector<uint64_t> all;
    for (uint32_t n = 0; n < groups; ++n) all.push_back(n);
    timing::Recorder recorder(all);
    recorder.attach(options_, true);
    const DispatchResult result = run();
    EXPECT_TRUE(result.ok) << result.fault;
    return recorder.take();
  }

  timing::ComputeUnitResult simulate(const std::vector<timing::GroupTrace> &traces) {
    std::vector<const timing::GroupTrace *> residents;
    for (const auto &trace : traces) residents.push_back(&trace);
    timing::ComputeUnitOptions options;
    options.profile = true;
    options.timeline = true;
    memory_.requests.clear();
    return timing::simulate_compute_unit(*kernel_.program, residents, constants_, memory_, options);
  }

  timing::ComputeUnitResult model(const std::string &assembly, uint32_t waves = 1,
                                  uint32_t groups = 1) {
    return simulate(record(assembly, waves, groups));
  }
  double clocks(const std::string &assembly, uint32_t waves = 1) {
    return model(assembly, waves).clocks;
  }
  // Clocks of `more` behind `code`.
  double cost(const std::string &code, const std::string &more, uint32_t waves = 1) {
    return clocks(code + more, waves) - clocks(code, waves);
  }

  static std::string repeat(int count, const std::string &code) {
    std::string s;
    for (int n = 0; n < count; ++n) s += code;
    return s;
  }
  // `code` with each % replaced by 0, 1, ...
  static std::string series(int count, const std::function<std::string(int)> &code) {
    std::string s;
    for (int n = 0; n < count; ++n) s += code(n);
    return s;
  }

  FixedLatency memory_;
  timing::Constants constants_;
};

}  // namespace flydsl::emu::test
