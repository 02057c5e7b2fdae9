// Where lines are found, from streams written by hand, and what a compute unit's path to memory
// makes of it.
#include "emulator/timing/memory_system.h"

#include <gtest/gtest.h>

#include "emulator/timing/memory_path.h"

namespace flydsl::emu::test {
namespace {

using timing::Constants;
using timing::GroupTrace;
using timing::kLineBytes;
using timing::MemoryKind;
using timing::MemoryPath;
using timing::MemoryProfile;
using timing::MemoryStreams;
using timing::MemoryUse;
using timing::OpService;
using timing::Source;

constexpr double kLarge = 1e12;  // a footprint that no cache holds

// One wave that executes operation `op` once a `pitch` of steps, a line each time.
class Stream {
 public:
  explicit Stream(uint32_t pitch = 1000) : pitch_(pitch) { group_.waves.resize(1); }
  Stream &touch(uint32_t op, const std::vector<uint64_t> &lines,
                MemoryKind kind = MemoryKind::kGlobalLoad, bool device_scope = false) {
    timing::WaveTrace &wave = group_.waves[0];
    for (const uint64_t line : lines) {
      for (uint32_t n = 1; n < pitch_; ++n) wave.steps.push_back(0);
      MemoryUse use;
      use.op = op;
      use.step = uint32_t(wave.steps.size());
      use.first_line = uint32_t(wave.lines.size());
      use.line_count = 1;
      use.lanes = 64;
      use.bytes_per_lane = 2;
      use.kind = kind;
      use.device_scope = device_scope;
      wave.steps.push_back(op);
      wave.memory.push_back(use);
      wave.lines.push_back(line);
    }
    return *this;
  }
  Stream &truncate() {
    group_.truncated = true;
    return *this;
  }
  const GroupTrace *group() const { return &group_; }

 private:
  uint32_t pitch_;
  GroupTrace group_;
};

std::vector<uint64_t> lines(uint64_t first, uint64_t count) {
  std::vector<uint64_t> result;
  for (uint64_t n = 0; n < count; ++n) result.push_back(first + n);
  return result;
}

double share(const OpService &service, Source source) {
  return service.share[unsigned(source)];
}

MemoryProfile profile(const std::vector<const Stream *> &units,
                      const std::vector<const Stream *> &others = {}, double footprint = kLarge,
                      const Constants &constants = {}) {
  MemoryStreams streams;
  for (const Stream *stream : units) streams.compute_units.push_back({stream->group()});
  for (const Stream *stream : others) streams.other_xcds.push_back(stream->group());
  streams.footprint_bytes = footprint;
  return timing::profile_memory(streams, 8, constants);
}

TEST(MemorySystem, AFirstTouchComesFromHbm) {
  Stream stream;
  stream.touch(1, lines(0, 100));
  const MemoryProfile p = profile({&stream});
  EXPECT_EQ(p.ops[1].lines, 100u);
  EXPECT_EQ(share(p.ops[1], Source::kHbm), 1);
  EXPECT_EQ(p.hit_rate, 0);
  EXPECT_EQ(p.ops[2].lines, 0u);
}

// As after the launch before, when everything fits.
TEST(MemorySystem, ASmallFootprintIsInTheMall) {
  Stream stream;
  stream.touch(1, lines(0, 100));
  const Constants constants;
  EXPECT_EQ(share(profile({&stream}, {}, constants.mall_bytes).ops[1], Source::kMall), 1);
  EXPECT_EQ(share(profile({&stream}, {}, 2 * constants.mall_bytes).ops[1], Source::kHbm), 1);
  EXPECT_NEAR(share(profile({&stream}, {}, 1.5 * constants.mall_bytes).ops[1], Source::kHbm), 0.5,
              1e-12);
}

TEST(MemorySystem, ComputeUnitsShareTheL2) {
  Stream first, second;
  first.touch(1, lines(0, 64));
  second.touch(1, lines(0, 64));
  // In lock-step: each line is on its way when the second asks for it.
  MemoryProfile p = profile({&first, &second});
  EXPECT_EQ(share(p.ops[1], Source::kHbm), 0.5);
  EXPECT_EQ(share(p.ops[1], Source::kL2Late), 0.5);
  EXPECT_EQ(p.hit_rate, 0.5);
  // Far behind: it is there.
  Stream later;
  later.touch(2, lines(1000000, 64)).touch(3, lines(0, 64));
  p = profile({&first, &later});
  EXPECT_EQ(share(p.ops[3], Source::kL2), 1);
}

TEST(MemorySystem, TheL2HoldsFourMegabytes) {
  const Constants constants;
  const uint64_t l2_lines = uint64_t(constants.l2_bytes) / kLineBytes;
  for (const double part : {0.5, 2.0}) {
    Stream stream(1);
    const auto all = lines(0, uint64_t(double(l2_lines) * part));
    stream.touch(1, all).touch(2, all);
    const MemoryProfile p = profile({&stream});
    EXPECT_GT(share(p.ops[2], part < 1 ? Source::kL2 : Source::kMall), 0.99) << part;
  }
}

// What one XCD wrote, another one reads: neither's L2 may answer.
TEST(MemorySystem, DeviceScopeGoesPastTheL2) {
  Stream stream(1);
  const auto all = lines(0, 64);
  stream.touch(1, all, MemoryKind::kGlobalLoad, true)
      .touch(2, all, MemoryKind::kGlobalLoad, true)
      .touch(3, all, MemoryKind::kGlobalStore, true)
      .touch(4, all, MemoryKind::kGlobalStore, true)
      .touch(5, all);
  const MemoryProfile p = profile({&stream});
  EXPECT_EQ(share(p.ops[1], Source::kHbm), 1);
  EXPECT_EQ(share(p.ops[2], Source::kMall), 1);
  EXPECT_EQ(p.ops[3].write_back, 1);
  EXPECT_EQ(p.ops[4].write_back, 0) << "the MALL holds them: HBM takes them once";
  EXPECT_EQ(share(p.ops[5], Source::kMall), 1) << "nor did it keep them";
}

TEST(MemorySystem, WhatOtherXcdsTouchComesFromHbmOnce) {
  Stream stream, same, different;
  stream.touch(1, lines(0, 64)).touch(2, lines(5000, 64));
  same.touch(1, lines(0, 64));
  different.touch(1, lines(100000, 64));
  const MemoryProfile p = profile({&stream}, {&same, &same, &same, &different});
  EXPECT_NEAR(share(p.ops[1], Source::kHbm), 0.25, 1e-12);
  EXPECT_NEAR(share(p.ops[1], Source::kMall), 0.75, 1e-12);
  EXPECT_EQ(share(p.ops[2], Source::kHbm), 1);
}

TEST(MemorySystem, HbmTakesAStoredLineOnce) {
  Stream stream;
  stream.touch(1, lines(0, 50), MemoryKind::kGlobalStore)
      .touch(2, lines(0, 50), MemoryKind::kGlobalStore)
      .touch(3, lines(900, 50), MemoryKind::kGlobalAtomic);
  const MemoryProfile p = profile({&stream});
  EXPECT_EQ(p.ops[1].write_back, 1);
  EXPECT_EQ(p.ops[2].write_back, 0);
  EXPECT_EQ(share(p.ops[1], Source::kL2), 1) << "a store reads nothing";
  EXPECT_EQ(share(p.ops[3], Source::kHbm), 1) << "an atomic does";
}

// Of work-groups in lock-step only what all of them have recorded counts; the rest would miss alone.
TEST(MemorySystem, BehindTheShortestStreamOnlyNewInstructionsCount) {
  Stream whole, cut;
  whole.touch(1, lines(0, 100)).touch(2, lines(700, 1));
  cut.touch(1, lines(0, 10)).truncate();
  const MemoryProfile p = profile({&whole, &cut});
  EXPECT_EQ(p.ops[1].lines, 20u);
  EXPECT_EQ(p.hit_rate, 10.0 / 21);
  EXPECT_EQ(p.ops[2].lines, 1u);
  EXPECT_EQ(p.steps, 10'000u);
}

class Path : public testing::Test {
 protected:
  Path() {
    constants_.l1_bytes_per_clock = 64;
    profile_.ops.resize(8);
    profile_.of_others.share[unsigned(Source::kHbm)] = 1;
    profile_.of_others.write_back = 1;
  }
  void all_from(Source source) {
    profile_.ops[1].share = {};
    profile_.ops[1].share[unsigned(source)] = 1;
    profile_.ops[1].lines = 1;
  }
  MemoryPath path(uint32_t units = 256) { return {constants_, profile_, 2e9, units}; }
  static MemoryUse use(uint16_t line_count, MemoryKind kind = MemoryKind::kGlobalLoad) {
    MemoryUse use;
    use.op = 1;
    use.line_count = line_count;
    use.lanes = 64;
    use.bytes_per_lane = uint16_t(line_count * kLineBytes / 64);
    use.kind = kind;
    return use;
  }

  Constants constants_;
  MemoryProfile profile_;
};

TEST_F(Path, LatencyOfEachPlace) {
  const uint64_t line = 77;
  const double transfer = kLineBytes / constants_.l2_bytes_per_clock;
  all_from(Source::kL2);
  EXPECT_EQ(path().vector(100, {0, 0, 0}, use(1), &line), 100 + transfer + constants_.l2_latency);
  const double hbm = kLineBytes / (constants_.hbm_bytes_per_second / 2e9 / 256),
               mall = kLineBytes / (constants_.mall_bytes_per_second / 2e9 / 256);
  all_from(Source::kHbm);
  EXPECT_NEAR(path().vector(100, {0, 0, 0}, use(1), &line), 100 + hbm + constants_.hbm_latency,
              1e-6);
  all_from(Source::kMall);
  EXPECT_NEAR(path().vector(100, {0, 0, 0}, use(1), &line), 100 + mall + constants_.mall_latency,
              1e-6);
}

TEST_F(Path, TheL1AnswersTheSecondTime) {
  const uint64_t line = 77;
  all_from(Source::kL2);
  MemoryPath p = path();
  p.vector(0, {0, 0, 0}, use(1), &line);
  EXPECT_EQ(p.vector(5000, {0, 1, 0}, use(1), &line), 5000 + 2 + constants_.l1_latency);
  EXPECT_GT(p.vector(9000, {1, 0, 0}, use(1), &line), 9000 + constants_.l2_latency)
      << "a copy of the work-group has data of its own";
  EXPECT_EQ(p.l2_bytes(), 2 * kLineBytes);
}

// A long stream runs at the bandwidth of its place.
TEST_F(Path, BandwidthOfEachPlace) {
  const auto clocks = [&](Source source, uint32_t units) {
    all_from(source);
    MemoryPath p = path(units);
    double done = 0;
    uint64_t line = 0;
    for (int n = 0; n < 4000; ++n, ++line) done = p.vector(0, {0, 0, 0}, use(1), &line);
    return done;
  };
  const double bytes = 4000.0 * kLineBytes;
  EXPECT_NEAR(clocks(Source::kL2, 256),
              bytes / constants_.l2_bytes_per_clock + constants_.l2_latency, 10);
  const double share = constants_.hbm_bytes_per_second / 2e9 / 256;
  EXPECT_NEAR(clocks(Source::kHbm, 256), bytes / share + constants_.hbm_latency, 10);
  EXPECT_NEAR(clocks(Source::kHbm, 128), bytes / (2 * share) + constants_.hbm_latency, 10);
  EXPECT_NEAR(clocks(Source::kHbm, 1),
              bytes / constants_.l2_bytes_per_clock + constants_.hbm_latency, 10)
      << "one compute unit alone has no more than its port";
}

TEST_F(Path, SharesAreHandedOutEvenly) {
  all_from(Source::kL2);
  profile_.ops[1].share = {};
  profile_.ops[1].share[unsigned(Source::kL2)] = 0.75;
  profile_.ops[1].share[unsigned(Source::kHbm)] = 0.25;
  MemoryPath p = path();
  uint64_t line = 0;
  for (int n = 0; n < 400; ++n, ++line) p.vector(1e6 * n, {0, 0, 0}, use(1), &line);
  EXPECT_EQ(p.hbm_bytes(), 100 * kLineBytes);
  EXPECT_EQ(p.l2_bytes(), 400 * kLineBytes);
}

// The profile's L1 lost each line before its second half was read (HBM, then L2), this one keeps it: HBM's bytes stay.
TEST_F(Path, WhatTheL1FindsEarlySparesTheNearestPlace) {
  all_from(Source::kL2);
  profile_.ops[1].share = {};
  profile_.ops[1].share[unsigned(Source::kL2)] = 0.5;
  profile_.ops[1].share[unsigned(Source::kHbm)] = 0.5;
  MemoryPath p = path();
  double clock = 0;
  for (uint64_t block = 0; block < 40; ++block)
    for (int half = 0; half < 2; ++half) {
      const std::vector<uint64_t> all = lines(1000 * block, 16);
      p.vector(clock += 1e6, {0, 0, 0}, use(16), all.data());
    }
  EXPECT_EQ(p.l2_bytes(), 40 * 16 * kLineBytes);
  EXPECT_NEAR(p.hbm_bytes(), 40 * 16 * kLineBytes, 16 * kLineBytes);
}

// In the profile one instruction touches each line first (HBM), another one later (L2); here they come in the other order.
TEST_F(Path, TheFirstTouchPaysWhoeverItIs) {
  all_from(Source::kL2);
  profile_.ops.resize(3);
  profile_.ops[2] = profile_.ops[1];
  profile_.ops[2].share = {};
  profile_.ops[2].share[unsigned(Source::kHbm)] = 1;
  MemoryPath p = path();
  double clock = 0;
  for (uint64_t block = 0; block < 40; ++block)
    for (const uint16_t op : {1, 2}) {
      const std::vector<uint64_t> all = lines(1000 * block, 16);
      MemoryUse load = use(16);
      load.op = op;
      p.vector(clock += 1e6, {0, 0, 0}, load, all.data());
    }
  EXPECT_EQ(p.l2_bytes(), 40 * 16 * kLineBytes);
  EXPECT_NEAR(p.hbm_bytes(), 40 * 16 * kLineBytes, 16 * kLineBytes);
}

// Where the profile's L1 found as many, nothing is owed for them: each miss is shared out as before.
TEST_F(Path, WhatBothFindInTheL1OwesNothing) {
  all_from(Source::kL2);
  profile_.ops[1].share = {};
  profile_.ops[1].share[unsigned(Source::kL2)] = 0.5;
  profile_.ops[1].share[unsigned(Source::kHbm)] = 0.5;
  profile_.ops[1].l1_share = 0.75;
  MemoryPath p = path();
  double clock = 0;
  for (uint64_t block = 0; block < 40; ++block)
    for (int time = 0; time < 4; ++time) {
      const std::vector<uint64_t> all = lines(1000 * block, 16);
      p.vector(clock += 1e6, {0, 0, 0}, use(16), all.data());
    }
  EXPECT_EQ(p.l2_bytes(), 40 * 16 * kLineBytes);
  EXPECT_NEAR(p.hbm_bytes(), 40 * 8 * kLineBytes, 8 * kLineBytes);
}

TEST_F(Path, StoresAreAcknowledgedByTheL2AndDrainToHbm) {
  profile_.ops[1].lines = 1;
  profile_.ops[1].write_back = 1;
  MemoryPath p = path();
  std::vector<uint64_t> all = lines(0, 64);
  const double done = p.vector(0, {0, 0, 0}, use(64, MemoryKind::kGlobalStore), all.data());
  EXPECT_NEAR(done, 64 * 2 + constants_.l2_latency, 1);
  EXPECT_NEAR(p.drained(), 64 * kLineBytes / (constants_.hbm_bytes_per_second / 2e9 / 256), 1);
  EXPECT_EQ(p.hbm_bytes(), 64 * kLineBytes);
}

TEST_F(Path, DeviceScopeGoesToTheMall) {
  all_from(Source::kL2);
  MemoryUse load = use(1), store = use(64, MemoryKind::kGlobalStore);
  load.device_scope = store.device_scope = true;
  MemoryPath p = path();
  const std::vector<uint64_t> all = lines(0, 64);
  for (const double begin : {0.0, 1e6})
    EXPECT_GT(p.vector(begin, {0, 0, 0}, load, all.data()), begin + constants_.mall_latency);
  const double bytes_per_clock = constants_.mall_bytes_per_second / 2e9 / 256;
  EXPECT_NEAR(p.vector(2e6, {0, 0, 0}, store, all.data()),
              2e6 + 64 * kLineBytes / bytes_per_clock + constants_.mall_latency, 5);
}

// An instruction that no stream reached counts as the mean of all.
TEST_F(Path, UnseenInstructions) {
  MemoryUse unseen = use(1);
  unseen.op = 5;
  MemoryPath p = path();
  const uint64_t line = 1;
  EXPECT_GT(p.vector(0, {0, 0, 0}, unseen, &line), constants_.hbm_latency);
}

}  // namespace
}  // namespace flydsl::emu::test
