// attention_decode against the float64 oracle of attention_forward: every instance, lengths, pages, masks,
// score terms, splits; what is hidden never leaks; refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>

#include "test/support/attention_decode_case.h"
#include "test/support/library.h"
#include "tools/verify/attention_decode_call.h"
#include "tools/verify/attention_device_case.h"
#include "tools/verify/attention_forward_spec.h"

namespace flydsl::test {
namespace {

constexpr uint16_t kBf16Nan = 0x7fc0;

class AttentionDecode : public ::testing::Test {
 protected:
  const uint64_t seed_ = test_seed(531);
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "FLYDSL_TEST_SEED=" + std::to_string(seed_)};
  Random random_{seed_};
};

std::string expected_kernel(const AttentionCase &c) {
  const int64_t rows = c.heads_q / c.heads_kv * c.seq_q;
  const int64_t most = c.head_dim == 128 ? 128 : 64;
  int64_t tile = 16;
  while (tile < most && tile < rows) tile *= 2;
  std::string dims = std::to_string(c.head_dim);
  if (c.value_dim() != c.head_dim) dims.append("x").append(std::to_string(c.value_dim()));
  const int64_t keys = tile <= 32 || c.head_dim == 256 ? 32 : tile;
  return std::string("attention_decode_") + flydsl_aot_dtype_name(c.dtype) + "_d" + dims + "_m" +
         std::to_string(tile) + "n" + std::to_string(keys);
}

// Every instance, rows that fill its tiles or not, and more rows than one tile has.
TEST_F(AttentionDecode, EveryInstance) {
  constexpr int64_t kDims[][2] = {{64, 64}, {128, 128}, {192, 128}, {256, 256}};
  for (const flydsl_aot_dtype dtype : {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16}) {
    for (const auto &[head_dim, value_dim] : kDims) {
      for (const int64_t group : {1, 5, 8, 20, 24}) {
        AttentionCase c;
        c.dtype = dtype;
        c.head_dim = head_dim;
        c.head_dim_v = value_dim;
        c.batches = 2;
        c.heads_kv = 2;
        c.heads_q = 2 * group;
        c.seq_q = group == 24 ? 3 : group == 20 ? 2 : group == 8 ? 4 : 1;
        c.seq_k = random_.between(65, 200);
        c.mask = causal_bottom_right();
        c.scale = 1 / std::sqrt(static_cast<float>(head_dim));
        c.fill_random(random_);
        EXPECT_EQ(check_decode(c).kernel, expected_kernel(c)) << describe(c);
      }
    }
  }
}

// Lengths that leave sequences empty, shorter than a tile, and with every remainder of tiles.
TEST_F(AttentionDecode, Lengths) {
  AttentionCase c;
  c.batches = 70;  // more than the lanes that look for a sequence
  c.heads_kv = 1;
  c.heads_q = 3;
  c.seq_k = 320;
  c.lengths_k_as = Lengths::kUsed;
  for (int64_t b = 0; b < c.batches; ++b)
    c.lengths_k.push_back(b % 5 == 3 ? 0 : b < 40 ? b : random_.between(1, c.seq_k));
  c.fill_random(random_);
  const AttentionResult result = check_decode(c);
  EXPECT_TRUE(same_bits(result, run_decode(c)));
}

TEST_F(AttentionDecode, NothingToSee) {
  AttentionCase c;
  c.batches = 3;
  c.heads_q = 2;
  c.seq_k = 0;
  c.fill_random(random_);
  check_decode(c);
  c.seq_k = 40;
  c.lengths_k_as = Lengths::kUsed;
  c.lengths_k = {0, 0, 0};
  c.sinks = {0.5f, -std::numeric_limits<float>::infinity()};
  c.fill_random(random_);
  check_decode(c);
}

// More workers than tiles, tiles that divide unequally, one sequence over all workers.
TEST_F(AttentionDecode, Splits) {
  for (const int64_t keys : {31, 33, 1000, 5000}) {
    AttentionCase c;
    c.batches = keys == 5000 ? 1 : 3;
    c.heads_kv = keys == 5000 ? 1 : 7;
    c.heads_q = 2 * c.heads_kv;
    c.seq_k = keys;
    c.fill_random(random_);
    check_decode(c);
  }
  AttentionCase c;  // 640 pairs of 4 tiles on 1,024 workers: segments within and across pairs
  c.head_dim = 128;
  c.batches = 40;
  c.heads_kv = c.heads_q = 16;
  c.seq_k = 100;
  c.fill_random(random_);
  check_decode(c);
}

TEST_F(AttentionDecode, Masks) {
  for (const flydsl_aot_anchor anchor :
       {FLYDSL_AOT_ANCHOR_TOP_LEFT, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT}) {
    for (const auto &[left, right] :
         {std::pair<int64_t, int64_t>{-1, 0}, {70, 0}, {3, 5}, {0, 0}, {-1, 40}, {130, -1}}) {
      AttentionCase c;
      c.batches = 4;
      c.heads_kv = 2;
      c.heads_q = 6;
      c.seq_q = random_.between(2, 16);
      c.seq_k = 210;
      c.lengths_k_as = Lengths::kUsed;
      c.lengths_k = {random_.between(100, 210), random_.between(1, 20), 7, 210};
      c.mask = {left, right, anchor, 0};
      c.fill_random(random_);
      check_decode(c);
    }
  }
}

TEST_F(AttentionDecode, ScoreTerms) {
  for (int terms = 1; terms < 8; ++terms) {
    AttentionCase c;
    c.dtype = terms % 2 ? FLYDSL_AOT_BF16 : FLYDSL_AOT_FP16;
    c.batches = 2;
    c.heads_kv = 2;
    c.heads_q = 8;
    c.seq_q = 5;
    c.seq_k = 150;
    c.mask = causal_bottom_right();
    c.scale = terms == 5 ? -0.2f : 0.125f;
    if (terms & 1) c.softcap = 3;
    if (terms & 2)
      for (int64_t n = 0; n < c.batches * c.heads_q; ++n)
        c.alibi_slopes.push_back(static_cast<float>(random_.uniform()));
    if (terms & 4)
      for (int64_t h = 0; h < c.heads_q; ++h) c.sinks.push_back(2 * random_.normal());
    c.fill_random(random_);
    check_decode(c);
  }
}

TEST_F(AttentionDecode, Scales) {
  for (const float scale : {0.0f, -0.3f, 1e-30f, 30.0f}) {
    AttentionCase c;
    c.heads_q = 4;
    c.seq_q = 2;
    c.seq_k = 100;
    c.scale = scale;
    c.want_lse = scale != -0.3f;
    c.fill_random(random_);
    check_decode(c);
  }
}

TEST_F(AttentionDecode, Layouts) {
  for (int i = 0; i < 6; ++i) {
    AttentionCase c;
    c.batches = 3;
    c.heads_kv = 2;
    c.heads_q = 4;
    c.seq_q = 3;
    c.seq_k = 77;
    c.place_q = random_placement(random_, 4, 3, false);
    c.place_k = random_placement(random_, 4, 3, true);
    c.place_v = random_placement(random_, 4, 3, true);
    c.place_out = random_placement(random_, 4, 3, false);
    c.place_lse = random_placement(random_, 3, 3, false);
    c.fill_random(random_);
    check_decode(c);
  }
}

// NaN and infinities: in sight they show, out of sight they do not.
TEST_F(AttentionDecode, HiddenNumbersNeverLeak) {
  AttentionCase c;
  c.heads_q = 2;
  c.seq_q = 4;
  c.seq_k = 100;
  c.mask = causal_bottom_right();
  c.fill_random(random_);
  // Seen by the last query only.
  for (int64_t d = 0; d < c.head_dim; ++d) {
    c.v[static_cast<size_t>(99 * c.head_dim + d)] = kBf16Nan;
    c.k[static_cast<size_t>(99 * c.head_dim + d)] = kBf16Nan;
  }
  const AttentionResult result = check_decode(c);
  EXPECT_TRUE(std::isnan(result.lse[3]));
  EXPECT_FALSE(std::isnan(result.lse[2]));
  // A window whose keys all are finite.
  for (size_t n = 0; n < static_cast<size_t>(20 * c.head_dim); ++n) c.k[n] = c.v[n] = kBf16Nan;
  c.mask = {50, 0, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0};
  check_decode(c);
  // Infinite values, and scores too large for the fast path.
  c.fill_random(random_);
  c.v[5] = 0x7f80;
  c.scale = 1e9f;
  check_decode(c);
}

class AttentionDecodePaged : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(BlockSizes, AttentionDecodePaged,
                         ::testing::Values(1, 2, 16, 32, 64, 128, 256),
                         [](const auto &info) { return std::to_string(info.param); });

TEST_P(AttentionDecodePaged, AgainstFloat64AndDense) {
  Random random(test_seed(77) + static_cast<uint64_t>(GetParam()));
  for (int i = 0; i < 4; ++i) {
    AttentionCase c;
    c.dtype = i % 2 ? FLYDSL_AOT_BF16 : FLYDSL_AOT_FP16;
    c.head_dim = i < 2 ? 128 : 64;
    c.batches = 4;
    c.heads_kv = 2;
    c.heads_q = 8;
    c.seq_q = i == 3 ? 6 : 1;
    const bool longest_is_told = i == 0 || i == 3;  // as max_seqlen_k, by an even length
    c.seq_k = 2 * random.between(145, 150) + !longest_is_told;
    c.lengths_k = {random.between(1, 290), 30, random.between(100, 290), 0};
    c.lengths_k_as = Lengths::kPaged;
    c.block_size = GetParam();
    c.mask = causal_bottom_right();
    // (blocks, block size, heads, D) in memory, as most engines have it.
    if (i % 2) c.place_k.order = c.place_v.order = {0, 2, 1, 3};
    c.fill_random(random);
    const AttentionResult paged = check_decode(c);
    c.lengths_k_as = Lengths::kUsed;
    const AttentionResult dense = check_decode(c);
    // Else the table's room is the longest, by which parts are put together in another order.
    if (longest_is_told) {
      EXPECT_TRUE(same_bits(paged, dense)) << describe(c);
    }
  }
}

// ROCm/FlyDSL#317, #629, ROCm/aiter#4840: kernels looked up by less than what they are for. Each call gives the bits that
// it gives on a handle of its own, whatever came before.
TEST_F(AttentionDecode, flydsl_317_order_of_calls) {
  std::vector<AttentionCase> cases;
  for (const char *line :
       {"c d=128 hq=8 sk=255", "c d=128 hq=8 sk=256", "c d=128 hq=16 sk=257",
        "c d=128 hq=16 hkv=4 sk=257", "c dtype=fp16 d=128 hq=8 sk=257", "c d=120 hq=8 sk=257",
        "c d=128 dv=64 hq=8 sk=257", "c d=128 hq=8 sk=257 kv_dtype=e4m3",
        "c d=128 hq=8 sk=257 kv_dtype=e5m2", "c d=128 hq=8 sk=257 k_place=pitch:8",
        "c d=128 hq=8 sk=257 q_place=offset:1",
        "c d=128 hq=8 sk=257 q_place=pitch:1 out_place=offset:3", "c d=128 hq=8 sk=257 softcap=5",
        "c d=128 hq=8 sk=257 k_lengths=paged:257 block=1", "c d=128 hq=8 sk=257 lse=no",
        "c d=576 dv=512 hq=8 sk=257 v=k", "c d=576 dv=512 hq=8 sk=257"})
    cases.push_back(build_attention_case(parse_attention_spec(line)));
  std::vector<AttentionResult> alone;
  for (const AttentionCase &c : cases) {
    const std::unique_ptr<flydsl_aot_handle, decltype(&flydsl_aot_close)> handle(open_emulator(),
                                                                                 flydsl_aot_close);
    alone.push_back(call_attention_decode(handle.get(), c));
    EXPECT_EQ(judge(c, alone.back(), reference_of(c)).fault, "") << describe(c);
  }
  for (size_t n = 0; n < 2 * cases.size(); ++n) {
    const size_t one = n < cases.size() ? n : 2 * cases.size() - 1 - n;
    EXPECT_TRUE(same_bits(run_decode(cases[one]), alone[one])) << describe(cases[one]);
  }
}

TEST_F(AttentionDecode, Refusals) {
  const auto status_of = [](const AttentionCase &c) {
    const AttentionResult result = run_decode(c);
    EXPECT_EQ(result.message.empty(), result.status == FLYDSL_AOT_OK);
    return result.status;
  };
  AttentionCase good;
  good.seq_k = 40;
  good.fill_random(random_);
  EXPECT_EQ(status_of(good), FLYDSL_AOT_OK);
  AttentionCase c = good;
  c.seq_q = 17;
  c.fill_random(random_);
  EXPECT_EQ(status_of(c), FLYDSL_AOT_UNSUPPORTED_SIZE);
  c = good;
  c.head_dim = 84;
  c.fill_random(random_);
  EXPECT_EQ(status_of(c), FLYDSL_AOT_UNSUPPORTED_HEAD_DIM);
  c = good;
  c.place_k.offset_elements = 1;
  EXPECT_EQ(status_of(c), FLYDSL_AOT_NO_KERNEL);
  c = good;
  c.mask = {-1, 0, FLYDSL_AOT_ANCHOR_NONE, 0};
  EXPECT_EQ(status_of(c), FLYDSL_AOT_INVALID_MASK);
  c = good;
  c.softcap = -1;
  EXPECT_EQ(status_of(c), FLYDSL_AOT_INVALID_ARGUMENT);
  c = good;
  c.lengths_k = {40};
  c.lengths_k_as = Lengths::kPaged;
  c.block_size = 24;
  EXPECT_EQ(status_of(c), FLYDSL_AOT_UNSUPPORTED_SIZE);
}

// What lines of cases cannot say. A call is refused with a message and writes nothing; so is the query, but for what
// it ignores.
TEST_F(AttentionDecode, MisuseIsRefused) {
  using Params = flydsl_aot_attention_decode_params;
  AttentionCase c;
  c.batches = 2;
  c.heads_q = 8;
  c.heads_kv = 2;
  c.seq_q = 2;
  c.seq_k = 64;
  c.lengths_k = {64, 33};
  c.lengths_k_as = Lengths::kPaged;
  c.alibi_slopes.assign(8, 0.1f);
  c.fill_random(random_);
  DeviceCase on_device(emulator(), c);
  Params good{};
  on_device.set(&good);
  on_device.prepare(&good, flydsl_aot_attention_decode_query);
  const struct {
    const char *name;
    flydsl_aot_status status;
    bool query_too;
    std::function<void(Params &)> change;
  } misuses[] = {
      {"vllm-project/vllm#34570: other heads of v than of k", FLYDSL_AOT_INVALID_SHAPE, true,
       [](Params &p) { p.v.sizes[1] = 1; }},
      {"v of another type than k", FLYDSL_AOT_INVALID_DTYPE, true,
       [](Params &p) { p.v.dtype = FLYDSL_AOT_FP16; }},
      {"out of another type than q", FLYDSL_AOT_INVALID_DTYPE, true,
       [](Params &p) { p.out.dtype = FLYDSL_AOT_FP32; }},
      {"fp32", FLYDSL_AOT_UNSUPPORTED_DTYPE, true,
       [](Params &p) { p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = FLYDSL_AOT_FP32; }},
      {"k is absent", FLYDSL_AOT_INVALID_SHAPE, true, [](Params &p) { p.k = {}; }},
      {"q of rank 3", FLYDSL_AOT_INVALID_SHAPE, true, [](Params &p) { p.q.rank = 3; }},
      {"a negative size", FLYDSL_AOT_INVALID_SHAPE, true, [](Params &p) { p.q.sizes[0] = -1; }},
      {"slopes of 7 heads", FLYDSL_AOT_INVALID_SHAPE, true,
       [](Params &p) { p.alibi_slopes.sizes[0] = 7; }},
      {"a table without lengths", FLYDSL_AOT_INVALID_ARGUMENT, true,
       [](Params &p) { p.seqused_k = {}; }},
      {"lengths of 64 bits", FLYDSL_AOT_INVALID_DTYPE, true,
       [](Params &p) { p.seqused_k.dtype = FLYDSL_AOT_INT64; }},
      {"a longest length below 0", FLYDSL_AOT_INVALID_ARGUMENT, true,
       [](Params &p) { p.max_seqlen_k = -1; }},
      {"k's channels apart", FLYDSL_AOT_INVALID_STRIDE, true,
       [](Params &p) { p.k.strides[3] = 2; }},
      {"rows of out on each other", FLYDSL_AOT_INVALID_STRIDE, true,
       [](Params &p) { p.out.strides[2] = 0; }},
      {"a scale of NaN", FLYDSL_AOT_INVALID_SCALE, true,
       [](Params &p) { p.scale = std::numeric_limits<float>::quiet_NaN(); }},
      {"k at NULL", FLYDSL_AOT_INVALID_POINTER, false, [](Params &p) { p.k.data = nullptr; }},
      {"out over q", FLYDSL_AOT_INVALID_POINTER, false, [](Params &p) { p.out.data = p.q.data; }},
      {"lse over out", FLYDSL_AOT_INVALID_POINTER, false,
       [](Params &p) { p.lse.data = p.out.data; }},
      {"workspace at NULL", FLYDSL_AOT_INVALID_WORKSPACE, false,
       [](Params &p) { p.workspace = nullptr; }},
      {"workspace one byte short", FLYDSL_AOT_INVALID_WORKSPACE, false,
       [](Params &p) { --p.workspace_bytes; }},
      {"workspace not aligned", FLYDSL_AOT_INVALID_WORKSPACE, false,
       [](Params &p) { p.workspace = static_cast<char *>(p.workspace) + 8; }},
      {"struct_size of nothing", FLYDSL_AOT_INVALID_STRUCT_SIZE, true,
       [](Params &p) { p.struct_size = 4; }},
  };
  for (const auto &misuse : misuses) {
    Params params = good;
    misuse.change(params);
    flydsl_aot_query_result query{};
    query.struct_size = sizeof query;
    EXPECT_EQ(flydsl_aot_attention_decode_query(emulator(), &params, &query),
              misuse.query_too ? misuse.status : FLYDSL_AOT_OK)
        << misuse.name;
    const flydsl_aot_status status = flydsl_aot_attention_decode(emulator(), &params, nullptr);
    EXPECT_EQ(status, misuse.status) << misuse.name << ": " << flydsl_aot_last_error();
    EXPECT_STRNE(flydsl_aot_last_error(), "") << misuse.name;
    EXPECT_TRUE(on_device.finish(status).outputs_untouched) << misuse.name;
  }
  // A struct from before the factors, whatever lies behind it.
  good.k_descale.rank = 99;
  good.struct_size = offsetof(Params, k_descale);
  const flydsl_aot_status status = flydsl_aot_attention_decode(emulator(), &good, nullptr);
  EXPECT_EQ(judge(c, on_device.finish(status), reference_of(c)).fault, "");
}

// Numbers of blocks that do not exist, lengths past the table: no memory outside the pool is read.
TEST(AttentionDecodeTable, BadNumbersTouchNoOtherMemory) {
  flydsl_aot_handle *handle = emulator();
  DeviceTensor q(handle, FLYDSL_AOT_BF16, {2, 1, 3, 64}, {}, 0x3f80);
  DeviceTensor k(handle, FLYDSL_AOT_BF16, {5, 1, 16, 64}, {}, 0x3f80);
  DeviceTensor out(handle, FLYDSL_AOT_BF16, {2, 1, 3, 64}, {}, 0xabababab);
  DeviceTensor table(handle, FLYDSL_AOT_INT32, {2, 4}, {}, 0);
  DeviceTensor used(handle, FLYDSL_AOT_INT32, {2}, {}, 0);
  table.set(std::vector<int32_t>{5, -1, 2147483647, -2147483647, 0, 4, 1, 6});
  flydsl_aot_attention_decode_params params{};
  params.struct_size = sizeof params;
  params.scale = 1;
  params.q = q.tensor();
  params.k = params.v = k.tensor();
  params.out = out.tensor();
  params.mask = no_mask();
  params.block_table = table.tensor();
  params.seqused_k = used.tensor();
  flydsl_aot_query_result query{};
  query.struct_size = sizeof query;
  ASSERT_EQ(flydsl_aot_attention_decode_query(handle, &params, &query), FLYDSL_AOT_OK);
  DeviceTensor workspace(handle, FLYDSL_AOT_FP32, {static_cast<int64_t>(query.workspace_bytes / 4)},
                         {}, 0xffffffff);
  EXPECT_EQ(flydsl_aot_attention_decode(handle, &params, nullptr), FLYDSL_AOT_INVALID_WORKSPACE);
  params.workspace = workspace.tensor().data;
  params.workspace_bytes = query.workspace_bytes - 1;
  EXPECT_EQ(flydsl_aot_attention_decode(handle, &params, nullptr), FLYDSL_AOT_INVALID_WORKSPACE);
  params.workspace_bytes = query.workspace_bytes;
  for (const int32_t length : {64, 63, 2147483647, -1}) {
    used.set(std::vector<int32_t>{length, length});
    EXPECT_EQ(flydsl_aot_attention_decode(handle, &params, nullptr), FLYDSL_AOT_OK)
        << flydsl_aot_last_error();
    EXPECT_EQ(flydsl_aot_device_synchronize(handle), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    const uint16_t expected = length > 0 ? 0x3f80 : 0;
    for (const uint16_t bits : out.get<uint16_t>()) ASSERT_EQ(bits, expected);
  }
}

}  // namespace
}  // namespace flydsl::test
