// Assembled kernels, recorded and modelled as launches of a whole device.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "emulator/timing/launch_model.h"
#include "emulator/timing/report.h"
#include "test/emulator/support/launch.h"

namespace flydsl::emu::test {

using timing::LaunchModel;
using timing::RecordedLaunch;

class ModelledLaunch : public Launch {
 protected:
  void SetUp() override {
    facts_.compute_units = 256;
    facts_.unit.lds_bytes = 160 * 1024;
    facts_.unit.lds_granule_bytes = 1280;
    facts_.target = "gfx950:sramecc+:xnack-";
  }

  void build_for(const std::string &assembly, uint32_t x, uint32_t y = 1, uint32_t waves = 1) {
    // Begins at a line, as device memory does.
    constexpr size_t kWords = 1 << 15, kAlignBytes = 256;
    build(assembly, kWords + kAlignBytes / 4);
    kernarg_ = (kernarg_ + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
    array_ = out_.data() + (kernarg_ - reinterpret_cast<uint64_t>(out_.data())) / 4;
    dispatch_.grid[0] = facts_.grid[0] = x;
    dispatch_.grid[1] = facts_.grid[1] = y;
    dispatch_.block[0] = facts_.block[0] = waves * 64;
    facts_.kernel = kernel_.name;
    facts_.group = {waves * 64, 256, 0};
  }
  // `everything`: each work-group is simulated.
  RecordedLaunch record(bool everything = false, bool all = false) {
    timing::RecordLimits limits = limits_;
    if (everything) {
      limits.samples.all_groups = UINT64_MAX;
      limits.samples.samples = UINT32_MAX;
      limits.samples.work = 1e18;
    }
    std::vector<Region> regions = {region(&kernarg_, 8, false, "kernel arguments"),
                                   region(array_, (1 << 15) * 4, true, "hipMalloc")};
    std::sort(regions.begin(), regions.end(),
              [](const Region &x, const Region &y) { return x.begin < y.begin; });
    RecordedLaunch launch;
    recorded_ = timing::record_launch(kernel_, dispatch_, RegionSnapshot(regions), facts_, all,
                                      limits, &launch, &result_, &error_);
    return launch;
  }
  LaunchModel model(bool everything = false) {
    const RecordedLaunch launch = record(everything);
    EXPECT_TRUE(recorded_) << error_;
    return timing::model_launch(launch, constants_);
  }
  static std::string json(const RecordedLaunch &launch, const timing::Constants &constants) {
    timing::ModelOptions options;
    options.profile = options.timeline = true;
    return timing::launch_json(timing::model_launch(launch, constants, options), *launch.program,
                               true);
  }

  uint32_t *array_ = nullptr;
  timing::LaunchFacts facts_;
  timing::RecordLimits limits_;
  timing::Constants constants_;
  DispatchResult result_;
  bool recorded_ = false;
  std::string error_;
};

}  // namespace flydsl::emu::test
