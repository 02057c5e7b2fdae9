// Every encoding of sequences of different lengths that the parameters have, against the float64 oracle.
#include "test/aotriton/calls.h"

namespace flydsl::test {
namespace {

// int32 numbers in device memory.
class Numbers {
 public:
  explicit Numbers(const std::vector<int64_t> &values) : count_(values.size()) {
    const std::vector<int32_t> numbers(values.begin(), values.end());
    EXPECT_EQ(flydsl_aot_device_malloc(emulator(), count_ * 4, &memory_), FLYDSL_AOT_OK);
    EXPECT_EQ(flydsl_aot_device_upload(emulator(), memory_, numbers.data(), count_ * 4),
              FLYDSL_AOT_OK);
  }
  ~Numbers() { flydsl_aot_device_free(emulator(), memory_); }
  Numbers(const Numbers &) = delete;
  Numbers &operator=(const Numbers &) = delete;

  TensorView<1> view() const {
    return {reinterpret_cast<intptr_t>(memory_), {count_}, {1}, aotriton::kInt32};
  }

 private:
  uint64_t count_;
  void *memory_ = nullptr;
};

std::vector<int64_t> sums(const std::vector<int64_t> &lengths) {
  std::vector<int64_t> result = {0};
  for (const int64_t length : lengths) result.push_back(result.back() + length);
  return result;
}

const AttentionCase &case_of(const ForwardClient &client) { return client.problem; }
const AttentionCase &case_of(const BackwardClient &client) { return client.problem.problem.forward; }

// Lines of both passes: padded sequences, and those that have unused rows between them.
const std::string kPadded =
    "b=3 hq=4 hkv=2 d=64 sq=80 sk=120 q_lengths=used:80,1,33 k_lengths=used:120,40,7 "
    "mask=causal:bottom-right";
const std::string kStrided =
    "b=3 hq=4 hkv=2 d=64 sq=80 sk=120 q_lengths=packed-used:80,1,33 k_lengths=packed-used:120,40,7 "
    "mask=causal:top-left";

template <typename Client>
class Sequences : public ::testing::Test {};
using Clients = ::testing::Types<ForwardClient, BackwardClient>;
TYPED_TEST_SUITE(Sequences, Clients);

// L with the shape of padded sequences is memory for that of packed ones.
TYPED_TEST(Sequences, LseOfAnotherShape) {
  const std::string line = "b=2 hq=3 hkv=3 sq=70 d=64 q_lengths=packed:70,21 k_lengths=packed:70,21";
  TypeParam client(line, Way::kFlash);
  const flydsl_aot_tensor &lse = client.asked.lse;
  ASSERT_EQ(lse.strides[0], lse.sizes[1]) << "without gaps";
  const auto numbers = static_cast<uint64_t>(lse.sizes[0] * lse.sizes[1]);
  client.params->L = TensorView<2>(reinterpret_cast<intptr_t>(lse.data), {1, numbers}, {numbers, 1},
                                   aotriton::kFloat32);
  expect_right(&client, line);
  client.params->L = TensorView<2>(reinterpret_cast<intptr_t>(lse.data), {1, numbers - 1},
                                   {numbers - 1, 1}, aotriton::kFloat32);
  EXPECT_EQ(client.call(), hipErrorInvalidValue);
}

#if AOTRITON_VERSION_MINOR < 14

TYPED_TEST(Sequences, Padded) {
  TypeParam client(kPadded, Way::kFlash);
  const Numbers q(sums(case_of(client).lengths_q)), k(sums(case_of(client).lengths_k));
  client.params->varlen_type = flash::VarlenType::PaddedVarlen;
  client.params->cu_seqlens_q = q.view();
  client.params->cu_seqlens_k = k.view();
  expect_right(&client, kPadded);
}

TYPED_TEST(Sequences, Strided) {
  TypeParam client(kStrided, Way::kFlash);
  const Numbers q(sums(case_of(client).lengths_q)), k(sums(case_of(client).lengths_k));
  client.params->varlen_type = flash::VarlenType::StridedVarlen;
  client.params->cu_seqlens_q = q.view();
  client.params->cu_seqlens_k = k.view();
  client.params->seq_strides_q = view_of<1>(client.asked.cu_seqlens_q);
  client.params->seq_strides_k = view_of<1>(client.asked.cu_seqlens_k);
  expect_right(&client, kStrided);
}

// Callers older than varlen_type leave it at its default.
TYPED_TEST(Sequences, ArraysSayThatTheyArePacked) {
  const std::string line = "b=2 hq=2 hkv=2 d=64 sq=80 q_lengths=packed:80,33 k_lengths=packed:80,33";
  TypeParam client(line, Way::kFlash);
  client.params->varlen_type = flash::VarlenType::None;
  expect_right(&client, line);
}

#else

constexpr flash::VarlenMode mode(uint32_t stacked, uint32_t length, uint32_t position) {
  flash::VarlenMode result{};
  result.stacked = stacked;
  result.length = length;
  result.position = position;
  return result;
}
using flash::VarlenLength;
using flash::VarlenPosition;
constexpr uint32_t kBHSD = flash::VarlenStacked::BHSD, kTHD = flash::VarlenStacked::THD;

// As PyTorch makes them: packed sequences, and those with starts and lengths apart.
TEST(VarlenBits, HaveTheirPlaces) {
  constexpr flash::VarlenMode kPacked = mode(kTHD, VarlenLength::CUMULATIVE, VarlenPosition::REUSE),
                              kApart = mode(kTHD, VarlenLength::CUMULATIVE, VarlenPosition::ARRAY);
  flash::VarlenBits bits{kPacked, kPacked, 0, 0};
  uint32_t word = 0;
  std::memcpy(&word, &bits, sizeof word);
  EXPECT_EQ(word, 0x0B0BU);
  bits = {kApart, kApart, flash::VarlenLseLayout::TH, 0};
  std::memcpy(&word, &bits, sizeof word);
  EXPECT_EQ(word, 0x11313U);
}

TYPED_TEST(Sequences, ThatCannotBeAreRefused) {
  const struct {
    flash::VarlenMode q, k;
    uint16_t layout, reserved;
    hipError_t error;
  } bad[] = {
      {mode(kTHD, 3, 0), {}, 0, 0, hipErrorInvalidValue},
      {mode(kTHD, VarlenLength::CUMULATIVE, 3), {}, 0, 0, hipErrorInvalidValue},
      {mode(kTHD, VarlenLength::INDIVIDUAL, VarlenPosition::REUSE), {}, 0, 0, hipErrorInvalidValue},
      // No arrays.
      {mode(kTHD, VarlenLength::CUMULATIVE, VarlenPosition::REUSE), {}, 0, 0, hipErrorInvalidValue},
      {{}, mode(kBHSD, VarlenLength::INDIVIDUAL, 0), 0, 0, hipErrorInvalidValue},
      // Nothing says how many there are.
      {mode(kTHD, 0, 0), mode(kTHD, 0, 0), 0, 0, hipErrorInvalidValue},
      {{}, {}, 2, 0, hipErrorInvalidValue},
      {{}, {}, 0, 1, hipErrorInvalidValue},
  };
  for (const auto &of : bad) {
    TypeParam client("b=1 hq=1 sq=40 d=64", Way::kFlash);
    client.params->varlen_bits = {of.q, of.k, of.layout, of.reserved};
    EXPECT_EQ(client.call(), of.error);
    EXPECT_NE(flydsl_aot_last_error(), std::string());
    EXPECT_TRUE(client.untouched());
  }
  // Positions within batches; arrays that are too short.
  TypeParam client("b=2 hq=1 sq=40 d=64", Way::kFlash);
  const Numbers two({40, 40});
  client.params->seqinfo_q0 = client.params->seqinfo_q1 = two.view();
  client.params->varlen_bits.qmode = mode(kBHSD, VarlenLength::INDIVIDUAL, VarlenPosition::ARRAY);
  EXPECT_EQ(client.call(), hipErrorNotSupported);
  client.params->varlen_bits.qmode = mode(kBHSD, VarlenLength::CUMULATIVE, VarlenPosition::IMPLIED);
  EXPECT_EQ(client.call(), hipErrorInvalidValue);
  EXPECT_NE(std::string(flydsl_aot_last_error()).find("lengths of side q are 2 numbers; 3 are needed"),
            std::string::npos)
      << flydsl_aot_last_error();
  EXPECT_TRUE(client.untouched());
}

TYPED_TEST(Sequences, Padded) {
  TypeParam client(kPadded, Way::kFlash);
  const Numbers q(sums(case_of(client).lengths_q)), k(sums(case_of(client).lengths_k));
  client.params->varlen_bits.qmode = client.params->varlen_bits.kmode =
      mode(kBHSD, VarlenLength::CUMULATIVE, VarlenPosition::IMPLIED);
  client.params->seqinfo_q0 = q.view();
  client.params->seqinfo_k0 = k.view();
  expect_right(&client, kPadded);
}

TYPED_TEST(Sequences, PaddedByIndividualLengths) {
  TypeParam client(kPadded, Way::kFlash);
  client.params->varlen_bits.qmode = client.params->varlen_bits.kmode =
      mode(kBHSD, VarlenLength::INDIVIDUAL, VarlenPosition::IMPLIED);
  client.params->seqinfo_q0 = view_of<1>(client.asked.seqused_q);
  client.params->seqinfo_k0 = view_of<1>(client.asked.seqused_k);
  expect_right(&client, kPadded);
}

TYPED_TEST(Sequences, Strided) {
  TypeParam client(kStrided, Way::kFlash);
  const Numbers q(sums(case_of(client).lengths_q)), k(sums(case_of(client).lengths_k));
  client.params->varlen_bits.qmode = client.params->varlen_bits.kmode =
      mode(kTHD, VarlenLength::CUMULATIVE, VarlenPosition::ARRAY);
  client.params->seqinfo_q0 = q.view();
  client.params->seqinfo_k0 = k.view();
  client.params->seqinfo_q1 = view_of<1>(client.asked.cu_seqlens_q);
  client.params->seqinfo_k1 = view_of<1>(client.asked.cu_seqlens_k);
  expect_right(&client, kStrided);
}

TYPED_TEST(Sequences, StridedByIndividualLengths) {
  TypeParam client(kStrided, Way::kFlash);
  client.params->varlen_bits.qmode = client.params->varlen_bits.kmode =
      mode(kTHD, VarlenLength::INDIVIDUAL, VarlenPosition::ARRAY);
  client.params->seqinfo_q0 = view_of<1>(client.asked.seqused_q);
  client.params->seqinfo_k0 = view_of<1>(client.asked.seqused_k);
  client.params->seqinfo_q1 = view_of<1>(client.asked.cu_seqlens_q);
  client.params->seqinfo_k1 = view_of<1>(client.asked.cu_seqlens_k);
  expect_right(&client, kStrided);
}

// PyTorch's seqused_k: the packed queries' arrays, and lengths and starts of the keys apart.
TYPED_TEST(Sequences, KeysInUse) {
  const std::string line =
      "b=3 hq=4 hkv=2 d=64 sq=80 sk=120 q_lengths=packed:80,1,33 k_lengths=packed-used:120,40,7";
  TypeParam client(line, Way::kFlash);
  expect_right(&client, line);
}

// Packed queries over a dense cache with lengths.
TYPED_TEST(Sequences, PackedOverDense) {
  const std::string line =
      "b=3 hq=4 hkv=2 d=64 sq=80 sk=120 q_lengths=packed:80,1,33 k_lengths=used:120,40,7";
  TypeParam client(line, Way::kFlash);
  client.params->varlen_bits.kmode = mode(kBHSD, VarlenLength::INDIVIDUAL, VarlenPosition::IMPLIED);
  client.params->seqinfo_k0 = view_of<1>(client.asked.seqused_k);
  client.params->seqinfo_k1 = {};
  client.params->Max_seqlen_k = 120;
  expect_right(&client, line);
}

// (B, H, S, D) in (B, S, H, D) memory as (1, H, B * S, D).
TensorView<4> stacked(const TensorView<4> &view) {
  EXPECT_EQ(view.stride(0), view.size(2) * view.stride(2));
  return {reinterpret_cast<intptr_t>(view.data_ptr()),
          {1, view.size(1), view.size(0) * view.size(2), view.size(3)},
          {0, view.stride(1), view.stride(2), 1},
          view.dtype()};
}

// Keys of one length, stacked without arrays.
TYPED_TEST(Sequences, Uniform) {
  const std::string line = "b=3 hq=2 hkv=2 d=64 sq=80 sk=120 q_lengths=packed:80,1,33" + kBshd;
  TypeParam client(line + (std::is_same_v<TypeParam, BackwardClient>
                               ? "dout_place=bshd dq_place=bshd dk_place=bshd dv_place=bshd"
                               : ""),
                   Way::kFlash);
  client.params->varlen_bits.kmode = mode(kTHD, VarlenLength::MAX, VarlenPosition::IMPLIED);
  client.params->seqinfo_k0 = {};
  client.params->Max_seqlen_k = 120;
  client.params->K = stacked(client.params->K);
  client.params->V = stacked(client.params->V);
  if constexpr (requires { client.params->DK; }) {
    client.params->DK = stacked(client.params->DK);
    client.params->DV = stacked(client.params->DV);
  }
  expect_right(&client, line);
}

// The LSE of token-major layout, as a strided tensor of the oracle's.
TYPED_TEST(Sequences, TokenMajorLse) {
  for (const std::string &line : {std::string("b=2 hq=3 hkv=3 sq=70 d=64 lse_place=bshd"),
                                 std::string("b=2 hq=3 hkv=3 sq=70 d=64 q_lengths=packed:70,21 "
                                             "k_lengths=packed:70,21 lse_place=bshd")}) {
    TypeParam client(line, Way::kFlash);
    const flydsl_aot_tensor &lse = client.asked.lse;
    ASSERT_EQ(lse.strides[lse.rank - 2], 1) << "heads are next to each other";
    const auto rows = static_cast<uint64_t>(lse.sizes[0] * lse.sizes[1] *
                                            (lse.rank == 3 ? lse.sizes[2] : 1) / 3);
    client.params->L = TensorView<2>(reinterpret_cast<intptr_t>(lse.data), {rows, 3}, {3, 1},
                                     aotriton::kFloat32);
    client.params->varlen_bits.lse_layout = flash::VarlenLseLayout::TH;
    expect_right(&client, line);
  }
}

#endif

}  // namespace
}  // namespace flydsl::test
