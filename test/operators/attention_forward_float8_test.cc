// 8-bit q, k and v, or a cache of 8-bit k and v under 16-bit queries, with their factors, against the
// float64 oracle of the same values.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "test/support/attention_forward_case.h"
#include "tools/verify/float16.h"
#include "tools/verify/float8.h"

namespace flydsl::test {
namespace {

// Values of the specification's tables.
TEST(Float8, Values) {
  EXPECT_EQ(float8_to_float(FLYDSL_AOT_E4M3, 0x7e), 448.0f);
  EXPECT_EQ(float8_to_float(FLYDSL_AOT_E4M3, 0x08), 0x1p-6f);
  EXPECT_EQ(float8_to_float(FLYDSL_AOT_E4M3, 0x81), -0x1p-9f);
  EXPECT_TRUE(std::isnan(float8_to_float(FLYDSL_AOT_E4M3, 0xff)));
  EXPECT_EQ(float8_to_float(FLYDSL_AOT_E5M2, 0x7b), 57344.0f);
  EXPECT_EQ(float8_to_float(FLYDSL_AOT_E5M2, 0x04), 0x1p-14f);
  EXPECT_EQ(float8_to_float(FLYDSL_AOT_E5M2, 0x01), 0x1p-16f);
  EXPECT_EQ(float8_to_float(FLYDSL_AOT_E5M2, 0xfc), -INFINITY);
  EXPECT_TRUE(std::isnan(float8_to_float(FLYDSL_AOT_E5M2, 0x7d)));
}

TEST(Float8, RoundsToNearest) {
  for (const flydsl_aot_dtype dtype : {FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2}) {
    const unsigned largest = dtype == FLYDSL_AOT_E4M3 ? 0x7e : 0x7b;
    for (unsigned code = 0; code < largest; ++code) {
      const float low = float8_to_float(dtype, static_cast<uint8_t>(code));
      const float high = float8_to_float(dtype, static_cast<uint8_t>(code + 1));
      const float middle = (low + high) / 2;
      EXPECT_EQ(float_to_float8(dtype, low), code);
      EXPECT_EQ(float_to_float8(dtype, std::nextafter(middle, 0.0f)), code);
      EXPECT_EQ(float_to_float8(dtype, std::nextafter(middle, 1e9f)), code + 1);
      EXPECT_EQ(float_to_float8(dtype, -middle), 0x80 | (code + code % 2));
    }
    EXPECT_EQ(float_to_float8(dtype, 1e9f), largest);
  }
}

// Through the kernel, as a single visible value with weight 1: out is V, exactly.
TEST(AttentionForwardFloat8, EveryValueIsWidenedExactly) {
  for (const flydsl_aot_dtype dtype : {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16}) {
    for (const flydsl_aot_dtype stored : {FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2}) {
      AttentionCase c;
      c.dtype = dtype;
      c.head_dim = 8;
      c.head_dim_v = 256;
      c.kv_dtype = stored;
      c.fill_q([](int64_t, int64_t, int64_t, int64_t) { return 0.0f; });
      c.fill_k([](int64_t, int64_t, int64_t, int64_t) { return 1.0f; });
      c.fill_v([&](int64_t, int64_t, int64_t, int64_t d) {
        return float8_to_float(stored, static_cast<uint8_t>(d));
      });
      const AttentionResult result = check_attention(c);
      for (unsigned code = 0; code < 256; ++code) {
        const float expected = float8_to_float(stored, static_cast<uint8_t>(code));
        const float got = to_float(dtype, result.out[code]);
        EXPECT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
            << code << ": " << got << " instead of " << expected;
      }
    }
  }
}

// The same in the instances for e4m3, whose fast path must do it: NaN codes, 0x7f and 0xff, are left out.
TEST(AttentionForwardFloat8, E4m3InstancesWidenExactly) {
  for (const flydsl_aot_dtype dtype : {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16}) {
    for (const auto &[dim, rows] : {std::pair{64, 1}, {64, 4096}, {128, 1}, {128, 2048}}) {
      AttentionCase c;
      c.dtype = dtype;
      c.q_dtype = c.kv_dtype = FLYDSL_AOT_E4M3;
      c.head_dim = dim;
      c.seq_q = rows;
      c.heads_q = c.heads_kv = 256 / dim;
      c.fill_q([](int64_t, int64_t, int64_t, int64_t) { return 0.0f; });
      c.fill_k([](int64_t, int64_t, int64_t, int64_t) { return 1.0f; });
      const auto value = [&](int64_t code) {
        return code % 128 == 127 ? 0.0f
                                 : float8_to_float(FLYDSL_AOT_E4M3, static_cast<uint8_t>(code));
      };
      c.fill_v([&](int64_t, int64_t h, int64_t, int64_t d) { return value(h * dim + d); });
      const AttentionResult result = check_attention(c);
      EXPECT_EQ(result.kernel, instance_name(c, false));
      for (int64_t code = 0; code < 256; ++code) {
        const int64_t first = code / dim * rows * dim + code % dim;  // of its head's first row
        EXPECT_EQ(to_float(dtype, result.out[static_cast<size_t>(first)]), value(code)) << code;
      }
    }
  }
}

class AttentionForwardFloat8Random : public ::testing::Test {
 protected:
  const uint64_t seed_ = test_seed(121);
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "FLYDSL_TEST_SEED=" + std::to_string(seed_)};
  Random random_{seed_};

  AttentionCase random_case(bool all) {
    const auto float8 = [&] { return random_.chance(0.5) ? FLYDSL_AOT_E4M3 : FLYDSL_AOT_E5M2; };
    AttentionCase c;
    c.dtype = random_.chance(0.5) ? FLYDSL_AOT_BF16 : FLYDSL_AOT_FP16;
    c.kv_dtype = float8();
    if (all) c.q_dtype = float8();
    constexpr int64_t kDims[] = {64, 128, 64, 128, 33, 72, 5};
    c.head_dim = kDims[random_.below(7)];
    c.head_dim_v = random_.chance(0.7) ? c.head_dim : random_.between(1, 128);
    c.batches = 2;
    c.heads_kv = random_.between(1, 2);
    c.heads_q = c.heads_kv * random_.between(1, 3);
    c.seq_q = random_.between(1, 90);
    c.seq_k = random_.between(1, 200);
    const flydsl_aot_mask masks[] = {no_mask(),
                                     causal_top_left(),
                                     causal_bottom_right(),
                                     {70, 5, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0}};
    c.mask = masks[random_.below(4)];
    c.fill_random(random_);
    return c;
  }
  AttentionCase::Descale random_descale(int64_t batches, int64_t heads) {
    AttentionCase::Descale descale;
    if (random_.chance(0.2)) return descale;
    if (random_.chance(0.2))
      descale.sizes = {1};
    else if (random_.chance(0.4))
      descale.sizes = {heads};
    else
      descale.sizes = {random_.chance(0.3) ? 1 : batches, random_.chance(0.2) ? 1 : heads};
    int64_t count = 1;
    for (const int64_t size : descale.sizes) count *= size;
    for (int64_t n = 0; n < count; ++n)
      descale.values.push_back(std::exp2(random_.normal()) * (random_.chance(0.1) ? -1.0f : 1.0f));
    return descale;
  }
  void add_descales(AttentionCase &c) {
    if (c.q_dtype)
      c.q_descale = random_descale(c.batches, random_.chance(0.5) ? c.heads_q : c.heads_kv);
    c.k_descale = random_descale(c.batches, c.heads_kv);
    c.v_descale = random_descale(c.batches, c.heads_kv);
  }
};

TEST_F(AttentionForwardFloat8Random, AllOfThem) {
  for (int i = 0; i < 30; ++i) {
    AttentionCase c = random_case(true);
    add_descales(c);
    EXPECT_EQ(check_attention(c).kernel, instance_name(c, false)) << describe(c);
  }
}

TEST_F(AttentionForwardFloat8Random, CacheUnder16BitQueries) {
  for (int i = 0; i < 30; ++i) {
    AttentionCase c = random_case(false);
    add_descales(c);
    if (random_.chance(0.5)) {
      c.lengths_q_as = Lengths::kPacked;
      c.lengths_k_as = random_.chance(0.5) ? Lengths::kPaged : Lengths::kPacked;
      c.block_size = int64_t{1} << random_.between(0, 7);
      for (int64_t b = 0; b < c.batches; ++b) {
        c.lengths_q.push_back(random_.between(0, c.seq_q));
        c.lengths_k.push_back(random_.between(0, c.seq_k));
      }
    }
    if (random_.chance(0.3)) c.softcap = 4;
    if (random_.chance(0.3)) c.sinks.assign(static_cast<size_t>(c.heads_q), 1.0f);
    check_attention(c);
  }
}

// Odd addresses and odd pitches of bytes.
TEST_F(AttentionForwardFloat8Random, EveryAlignment) {
  for (int64_t offset = 0; offset < 8; ++offset) {
    AttentionCase c = random_case(true);
    for (Placement *place : {&c.place_q, &c.place_k, &c.place_v}) {
      place->offset_elements = offset;
      place->pad = {0, 0, 0, offset};
    }
    check_attention(c);
  }
}

// The slow path reads 8 bits too: hidden NaN everywhere, a visible one in a column of V.
TEST_F(AttentionForwardFloat8Random, NanNeverLeaks) {
  for (int i = 0; i < 6; ++i) {
    AttentionCase c = random_case(i % 2 == 0);
    add_descales(c);
    c.seq_q = 40;
    c.seq_k = 90;
    c.mask = causal_top_left();
    c.fill_random(random_);
    const uint16_t nan = from_float(c.dtype, NAN);
    for (int64_t j = 30; j < 90; ++j) {
      for (int64_t d = 0; d < c.head_dim; ++d) c.k[static_cast<size_t>(j * c.head_dim + d)] = nan;
      for (int64_t d = 0; d < c.value_dim(); ++d)
        c.v[static_cast<size_t>(j * c.value_dim() + d)] = nan;
    }
    c.v[static_cast<size_t>(7 * c.value_dim())] = nan;
    EXPECT_TRUE(std::isfinite(check_attention(c).lse[29]));
  }
}

}  // namespace
}  // namespace flydsl::test
