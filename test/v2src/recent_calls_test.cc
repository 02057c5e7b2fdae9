// A handle that knows calls of a form answers and launches as one that has seen none does, whatever the addresses are.
#include <random>

#include "test/v2src/gemm_fixture.h"

namespace flydsl::test {
namespace {

// What a call came to.
struct Outcome {
  int status = 0;
  std::string message;
  std::vector<FakeHip::Launch> launches;
};

bool is_same(const FakeHip::Launch &a, const FakeHip::Launch &b) {
  return std::string(a.symbol) == b.symbol && a.device == b.device && a.stream == b.stream &&
         std::equal(a.grid, a.grid + 3, b.grid) && std::equal(a.block, a.block + 3, b.block) &&
         a.kernarg_bytes == b.kernarg_bytes &&
         std::memcmp(a.kernarg, b.kernarg, a.kernarg_bytes) == 0;
}

void expect_same(const Outcome &known, const Outcome &right) {
  EXPECT_EQ(known.status, right.status) << known.message << " / " << right.message;
  EXPECT_EQ(known.message, right.message);
  EXPECT_TRUE(std::equal(known.launches.begin(), known.launches.end(), right.launches.begin(),
                         right.launches.end(), is_same));
}

class RecentCallsTest : public GemmTest {
 protected:
  Outcome outcome_of(flydsl_aot::Library &library, const GemmParams &params, void *stream) {
    Outcome outcome;
    const int before = fake_->launches;
    const auto status = library.gemm(params, stream);
    outcome.status = status.code();
    outcome.message = status.message();
    for (int number = before; number < fake_->launches; ++number)
      outcome.launches.push_back(fake_->recent[number % 8]);
    return outcome;
  }
  flydsl_aot::Library fresh() {
    auto options = flydsl_aot::open_options();
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = FAKE_HIP7;
    options.archive_path = archive_path_.c_str();
    flydsl_aot::Library library;
    EXPECT_TRUE(flydsl_aot::Library::open(options, &library).ok());
    return library;
  }
  // As a handle that knows the form of `params`, and as one that does not.
  void expect_alike(const GemmParams &params, void *stream = nullptr) {
    flydsl_aot::Library anew = fresh();
    expect_same(outcome_of(library_, params, stream), outcome_of(anew, params, stream));
  }
  // From now on the handle knows its form.
  void make_known(const GemmParams &params) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(outcome_of(library_, params, nullptr).status, FLYDSL_AOT_OK);
  }
};

std::vector<void **> addresses_of(GemmParams *params) {
  std::vector<void **> addresses = {&params->workspace};
  for (flydsl_aot_tensor *tensor :
       {&params->a, &params->b, &params->c, &params->d, &params->a_descale, &params->b_descale,
        &params->d_scale, &params->epilogue.bias_m, &params->epilogue.bias_n,
        &params->epilogue.residual, &params->epilogue.aux})
    if (tensor->rank != 0) addresses.push_back(&tensor->data);
  return addresses;
}

GemmParams in_parts() {
  GemmParams params = valid_gemm();
  params.a.sizes[0] = params.d.sizes[0] = 40;
  params.a.sizes[1] = params.a.strides[0] = params.b.sizes[0] = 20000;
  return params;
}

TEST_F(RecentCallsTest, OtherAddresses) {
  for (GemmParams params : {valid_gemm(), full_gemm(), in_parts()}) {
    make_known(params);
    uint64_t by = 0;
    for (void **address : addresses_of(&params))
      *address = static_cast<char *>(*address) + (by += uint64_t{3} << 36);
    expect_alike(params);
    expect_alike(params, fake_stream(0));
    expect_alike(params, fake_stream(1));
  }
  EXPECT_EQ(outcome_of(library_, in_parts(), nullptr).launches.size(), 2u);
}

TEST_F(RecentCallsTest, WhatIsWrongWithAddressesIsStillSeen) {
  const GemmParams params = full_gemm();
  make_known(params);
  const size_t count = addresses_of(const_cast<GemmParams *>(&params)).size();
  for (size_t i = 0; i < count; ++i) {
    GemmParams wrong = params;
    void **address = addresses_of(&wrong)[i];
    char *right = static_cast<char *>(*address);
    for (char *other : {static_cast<char *>(nullptr), right + 1, right + 2,
                        reinterpret_cast<char *>(~uint64_t{0} - 255),
                        static_cast<char *>(params.d.data), static_cast<char *>(params.d.data) + 256,
                        static_cast<char *>(params.epilogue.aux.data) - 256}) {
      *address = other;
      SCOPED_TRACE(std::to_string(i) + " at " + std::to_string(reinterpret_cast<uint64_t>(other)));
      for (int repetition = 0; repetition < 3; ++repetition) expect_alike(wrong);
    }
  }
  expect_alike(params);
}

TEST_F(RecentCallsTest, MemoryThatIsShared) {
  GemmParams params = full_gemm();
  params.d = gemm_tensor(kD, FLYDSL_AOT_FP16, {300, 200});
  params.a.dtype = params.b.dtype = FLYDSL_AOT_E4M3;
  params.d_scale = {};
  params.c = params.epilogue.residual = params.d;  // in place
  make_known(params);
  params.d.data = params.c.data = params.epilogue.residual.data = gemm_place(kD, 1 << 20);
  expect_alike(params);
  params.c.data = gemm_place(kC);
  for (int repetition = 0; repetition < 40; ++repetition) expect_alike(params);
  params.c.data = gemm_place(kD, (1 << 20) + 256);
  expect_alike(params);
}

TEST_F(RecentCallsTest, RandomAddresses) {
  const auto seed = ::testing::UnitTest::GetInstance()->random_seed();
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto below = [&](uint64_t n) { return random() % n; };
  int launched = 0, refused = 0;
  for (int turn = 0; turn < 400; ++turn) {
    GemmParams params = below(2) ? full_gemm() : in_parts();
    for (void **address : addresses_of(&params)) {
      constexpr uint64_t kOffsets[] = {0, 0, 0, 0, 256, 16, 32, 4, 60000, 1};
      const uint64_t place = (1 + below(40)) << 20;
      *address = reinterpret_cast<void *>(below(100) ? place + kOffsets[below(10)] : 0);
    }
    flydsl_aot::Library anew = fresh();
    const Outcome right = outcome_of(anew, params, nullptr);
    (right.status == FLYDSL_AOT_OK ? launched : refused)++;
    for (int repetition = 0; repetition < 3; ++repetition)
      expect_same(outcome_of(library_, params, nullptr), right);
  }
  EXPECT_GT(launched, 50);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace flydsl::test
