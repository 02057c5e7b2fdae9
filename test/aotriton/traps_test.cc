// What callers of AOTriton leave unset or do in their own way, and what is refused, with its text.
#include <dlfcn.h>

#include <algorithm>

#include "test/aotriton/calls.h"

namespace flydsl::test {
namespace {

bool says(const std::string &text) {
  return std::string(flydsl_aot_last_error()).find(text) != std::string::npos;
}
template <typename Number>
bool poisoned(const Number &number) {
  const auto *bytes = reinterpret_cast<const unsigned char *>(&number);
  return std::all_of(bytes, bytes + sizeof number, [](unsigned char b) { return b == kPoison; });
}

const std::string kSmall = "b=2 hq=2 hkv=2 sq=70 sk=90 d=64";
void *const kNowhere = reinterpret_cast<void *>(0x1234);

TEST(Unset, ConstructorsLeaveWhatHasNoInitialiser) {
  Poisoned<flash::attn_fwd_params> forward;
  EXPECT_TRUE(poisoned(forward->Sm_scale) && poisoned(forward->dropout_p) &&
              poisoned(forward->window_left) && poisoned(forward->window_right) &&
              poisoned(forward->causal_type));
  EXPECT_TRUE(!forward->B && !forward->A && !forward->L && poisoned(forward->B.size_ptr()[3]));
  Poisoned<flash::attn_bwd_params> backward;
  EXPECT_TRUE(poisoned(backward->dropout_p) && poisoned(backward->window_left));
  EXPECT_TRUE(!backward->D && !backward->DQ_ACC && !backward->B);
#if AOTRITON_VERSION_MINOR < 14
  EXPECT_EQ(forward->varlen_type, 0);
  EXPECT_EQ(backward->varlen_type, 0);
#else
  EXPECT_EQ(forward->varlen_bits.qmode.stacked, 0);
  EXPECT_EQ(backward->varlen_bits.kmode.length, 0);
#endif
}

// What a call does not need may hold anything.
template <typename Params>
void spoil(Params *params) {
  ASSERT_EQ(params->causal_type, flash::CausalType::None);
  params->window_left = -5;
  params->window_right = -2147483646;
  params->Max_seqlen_q = -1;
  params->Max_seqlen_k = 3;
  params->dropout_p = 0;
  params->philox_seed_ptr = params->philox_offset1 = number_view(kNowhere);
  params->philox_offset2 = 99;
}

TEST(Unset, Forward) {
  ForwardClient client(kSmall, Way::kEfficient);
  spoil(&*client.params);
  client.params->philox_seed_output = client.params->philox_offset_output = number_view(kNowhere);
  client.params->persistent_atomic_counter = TensorView<0>(0x1234, aotriton::kInt32);
  expect_right(&client, kSmall);
}

TEST(Unset, Backward) {
  BackwardClient client(kSmall, Way::kEfficient);
  spoil(&*client.params);
  client.params->D = {};
  client.params->DQ_ACC = {};
  expect_right(&client, kSmall);
}

TEST(Unset, NoKeys) {
  ForwardClient client("b=1 hq=2 hkv=2 sq=70 sk=0 d=64", Way::kFlash);
  expect_right(&client, "no keys");
}

TEST(Refused, Versions) {
  for (const int32_t version : {-1, 0, 1, 2, 5, 6, 7}) {
    ForwardClient client(kSmall, Way::kFlash);
    EXPECT_EQ(client.call(nullptr, version), hipErrorInvalidValue);
    EXPECT_TRUE(says("params_version is " + std::to_string(version))) << flydsl_aot_last_error();
    EXPECT_TRUE(client.untouched());
  }
  for (const int32_t version : {-1, 0, 3, 4, 5, 8}) {
    BackwardClient client(kSmall, Way::kFlash);
    EXPECT_EQ(client.call(nullptr, version), hipErrorInvalidValue);
    EXPECT_TRUE(client.untouched());
  }
}

TEST(Refused, Fp32) {
  ForwardClient client(kSmall, Way::kEfficient);
  const auto as_fp32 = [](const TensorView<4> &view) {
    return TensorView<4>(reinterpret_cast<intptr_t>(view.data_ptr()), view.sizes(), view.strides(),
                         aotriton::kFloat32);
  };
  for (auto *tensor : {&client.params->Q, &client.params->K, &client.params->V, &client.params->Out})
    *tensor = as_fp32(*tensor);
  EXPECT_EQ(client.call(), hipErrorNotSupported);
  EXPECT_TRUE(says("fp32") && says("bf16")) << flydsl_aot_last_error();
  EXPECT_TRUE(client.untouched());

  BackwardClient backward(kSmall, Way::kEfficient);
  backward.params->Q = as_fp32(backward.params->Q);
  EXPECT_EQ(backward.call(), hipErrorNotSupported);
  EXPECT_TRUE(backward.untouched());
  EXPECT_EQ(backward.dq_accumulator.acquired, 0);
  EXPECT_EQ(backward.dq_accumulator.disposed, 1);
  EXPECT_EQ(backward.row_sums.disposed, 1);
}

TEST(Refused, LseOfAnotherShape) {
  const std::string line = "b=3 hq=4 hkv=2 d=64 sq=80 q_lengths=packed:80,1,33 k_lengths=packed:80,1,33";
  ForwardClient client(line, Way::kFlash);
  // (Hq, Max_seqlen_q), as callers had for each batch: packed rows would be written past its end.
  client.params->L = TensorView<2>(reinterpret_cast<intptr_t>(client.asked.lse.data), {4, 80}, {80, 1},
                                   aotriton::kFloat32);
  EXPECT_EQ(client.call(), hipErrorInvalidValue);
  EXPECT_TRUE(says("L is 4 x 80")) << flydsl_aot_last_error();
  EXPECT_TRUE(client.untouched());
}

TEST(Refused, BackendsThatAreNotThere) {
  flash::attn_options options;
  options.force_backend_index = 2;
  ForwardClient forward(kSmall, Way::kFlash);
  EXPECT_EQ(forward.call(&options), hipErrorInvalidValue);
  EXPECT_TRUE(says("force_backend_index is 2; allowed: -1 (any) to 1")) << flydsl_aot_last_error();
  BackwardClient backward(kSmall, Way::kFlash);
  options.force_backend_index = 3;
  EXPECT_EQ(backward.call(&options), hipErrorInvalidValue);
  EXPECT_EQ(backward.dq_accumulator.disposed, 1);
  EXPECT_EQ(backward.row_sums.disposed, 1);
  // No assembly takes an ALiBi term: nothing falls back.
  options.force_backend_index = 1;
  ForwardClient alibi(kSmall + " alibi=bh", Way::kFlash);
  EXPECT_EQ(alibi.call(&options), hipErrorNoBinaryForGpu) << flydsl_aot_last_error();
  EXPECT_TRUE(alibi.untouched());
}

TEST(Options, NativeBackendAndEqualBits) {
  flash::attn_options options;
  options.force_backend_index = 0;
  options.deterministic = true;
  ForwardClient forward(kSmall, Way::kFlash), again(kSmall, Way::kFlash);
  ASSERT_EQ(forward.call(&options), hipSuccess) << flydsl_aot_last_error();
  ASSERT_EQ(again.call(&options), hipSuccess) << flydsl_aot_last_error();
  EXPECT_TRUE(same_bits(forward.on_device.finish(FLYDSL_AOT_OK), again.on_device.finish(FLYDSL_AOT_OK)));
  for (const int backend : {0, 1}) {
    options.force_backend_index = backend;
    BackwardClient backward(kSmall, Way::kFlash);
    ASSERT_EQ(backward.call(&options), hipSuccess) << flydsl_aot_last_error();
    EXPECT_EQ(backward.fault(), "");
  }
}

TEST(Lazy, EagerTensorsAreNotAskedFor) {
  const std::string line = kSmall + " dropout=0.3 dropout_from=device";
  BackwardClient client(line, Way::kFlash);
  auto &lazy = client.params->DQ_ACC;
  lazy.eager = lazy.acquire(&lazy);
  client.dq_accumulator.acquired = 0;
  expect_right(&client, line);
  EXPECT_EQ(client.dq_accumulator.acquired, 0);
  EXPECT_EQ(client.dq_accumulator.disposed, 1);
}

// The first call disposed of the tensor: the second does without.
TEST(Lazy, ParametersThatAreUsedAgain) {
  const std::string line = kSmall + " dropout=0.3 dropout_from=device";
  BackwardClient client(line, Way::kFlash);
  ASSERT_EQ(client.call(), hipSuccess) << flydsl_aot_last_error();
  expect_right(&client, line);
  EXPECT_EQ(client.dq_accumulator.acquired, 1);
  EXPECT_EQ(client.dq_accumulator.disposed, 1);
}

// A caller's allocator that runs out of memory throws: through the library to the caller, and both tensors are disposed of.
TEST(Lazy, ExceptionsOfTheCallerPassThrough) {
  BackwardClient client(kSmall + " dropout=0.3 dropout_from=device", Way::kFlash);
  client.dq_accumulator.throws = true;
  EXPECT_THROW((void)client.call(), std::runtime_error);
  EXPECT_EQ(client.dq_accumulator.acquired, 1);
  EXPECT_EQ(client.dq_accumulator.disposed, 1);
  EXPECT_EQ(client.row_sums.disposed, 1);
  EXPECT_TRUE(client.untouched());
}

TEST(Terms, Alibi) {
  for (const char *slopes : {"h", "bh"}) {
    const std::string line = kSmall + " mask=causal:bottom-right alibi=" + slopes;
    ForwardClient client(line, Way::kFlash);
    client.params->A = view_of<2>(client.asked.alibi_slopes);
    expect_right(&client, line);
  }
}

TEST(Terms, AlibiFromTheOtherDiagonalIsRefused) {
  ForwardClient client(kSmall + " mask=causal:top-left alibi=h", Way::kFlash);
  client.params->A = view_of<2>(client.asked.alibi_slopes);
  EXPECT_EQ(client.call(), hipErrorNotSupported);
  EXPECT_TRUE(says("ALiBi")) << flydsl_aot_last_error();
  EXPECT_TRUE(client.untouched());
}

TEST(Terms, EncodedSoftmax) {
  const std::string line =
      "b=2 hq=2 hkv=1 sq=30 sk=50 d=64 dropout=0.4 dropout_from=device dropout_seed=3";
  for (const bool alone : {false, true}) {
    ForwardClient client(line, Way::kFlash);
    const AttentionCase &c = client.problem;
    DeviceTensor signs(emulator(), FLYDSL_AOT_BF16, {2, 2, 30, 50}, bshd(), 0xABABABAB);
    const TensorView<4> view = view_of<4>(signs.tensor());
    if (alone) {
      ASSERT_EQ(aotriton::v2::flash::debug_simulate_encoded_softmax(
                    view, c.dropout_p, client.params->philox_seed_ptr, client.params->philox_offset1,
                    client.params->philox_offset2, client.hip_stream()),
                hipSuccess)
          << flydsl_aot_last_error();
    } else {
      client.params->encoded_softmax = view;
      expect_right(&client, line);
    }
    const std::vector<uint16_t> bits = signs.get<uint16_t>();
    for (int64_t i = 0; i < c.score_count(); ++i) {
      const bool kept = c.keeps(i / 3000, i / 1500 % 2, i / 50 % 30, i % 50);
      ASSERT_EQ(bits[static_cast<size_t>(i)], kept ? 0x3F00 : 0xBF00) << i;
    }
    EXPECT_EQ(signs.changed_outside(), "");
  }
}

// Numbers count from the top-left diagonal, sentinels from their own.
TEST(Windows, OfBothDiagonals) {
  struct Window {
    const char *mask, *sizes;
    int32_t left, right;
  };
  using flash::WindowValue;
  const Window windows[] = {
      // 30 keys before query i, and up to key i + Sk - Sq.
      {"50,0:bottom-right", "sq=70 sk=90", 30, WindowValue::BottomRightAligned},
      {"30,0:top-left", "sq=70 sk=70", 30, WindowValue::BottomRightAligned},
      // As many as there are: no bound.
      {"none", "sq=70 sk=90", 69, 89},
      {"30,0:top-left", "sq=70 sk=90", 30, WindowValue::TopLeftAligned},
      {"-1,5:top-left", "sq=70 sk=90", WindowValue::TopLeftAligned, 5},
      {"-1,5:top-left", "sq=70 sk=90", WindowValue::BottomRightAligned, 5},
      // A window beyond the diagonal, seen from the other one.
      {"15,25:bottom-right", "sq=90 sk=70", 35, 5},
      {"15,5:bottom-right", "sq=70 sk=90", -5, 25},
  };
  for (const Window &window : windows) {
    const std::string line = std::string("b=1 hq=2 hkv=1 d=64 ") + window.sizes + " mask=" + window.mask;
    ForwardClient client(line, Way::kFlash);
    client.params->causal_type = flash::CausalType::WindowedAttention;
    client.params->window_left = window.left;
    client.params->window_right = window.right;
    expect_right(&client, line);
  }
}

// Sliding windows over packed sequences: with one array of starts both diagonals are one; else that of FlashAttention.
TEST(Windows, OfPackedSequences) {
  const std::string line =
      "b=3 hq=2 hkv=1 d=64 sq=90 sk=120 q_lengths=packed:90,0,33 k_lengths=packed:120,9,33 "
      "mask=10,0:bottom-right";
  ForwardClient client(line, Way::kFlash);
  expect_right(&client, line);
}

TEST(Windows, ThatDoNotHoldTheDiagonalAreRefused) {
  ForwardClient client("b=1 hq=1 sq=70 sk=70 d=64 mask=3,3:top-left", Way::kFlash);
  client.params->window_left = -4;
  EXPECT_EQ(client.call(), hipErrorNotSupported);
  EXPECT_TRUE(says("window_left is -4, window_right 3")) << flydsl_aot_last_error();
  client.params->causal_type = 7;
  EXPECT_EQ(client.call(), hipErrorInvalidValue);
  EXPECT_TRUE(client.untouched());
}

// Head dims that nothing else here has: their kernels are not loaded.
TEST(Captures, TheFirstUseIsRefused) {
  ForwardClient forward("b=1 hq=1 sq=20 d=224", Way::kFlash);
  forward.stream.capture([&] { EXPECT_EQ(forward.call(), hipErrorStreamCaptureUnsupported); }, 1);
  EXPECT_TRUE(says("prefetch")) << flydsl_aot_last_error();
  EXPECT_TRUE(forward.untouched());
  expect_right(&forward, "then");
}

TEST(Device, IsTheStreams) {
  const ClientStream stream;
  const auto hip_stream = static_cast<hipStream_t>(stream.get());
  EXPECT_EQ(aotriton::v2::flash::check_gpu(hip_stream), hipSuccess) << flydsl_aot_last_error();
  EXPECT_EQ(aotriton::v2::flash::check_gpu(nullptr), hipSuccess);
  EXPECT_EQ(aotriton::getGpuFromStream(hip_stream), aotriton::GPU_AMD_ARCH_GFX950_MOD0);
  EXPECT_EQ(aotriton::getMultiProcessorCount(hip_stream), 256);
  EXPECT_FALSE(aotriton::isArchExperimentallySupported(hip_stream));
  EXPECT_FALSE(aotriton::isArchTechPreview(hip_stream));
}

// The constructors that programs compiled with AOTriton's headers call: no byte beyond the parameters of the library's version.
TEST(Constructors, OfTheLibrary) {
  struct {
    const char *name;
    size_t bytes, bits;  // of version 4 or 7, where varlen_bits are
  } const constructors[] = {{"_ZN8aotriton2v35flash15attn_fwd_paramsC1Ev", 832, 828},
                            {"_ZN8aotriton2v35flash15attn_bwd_paramsC2Ev", 1240, 1232}};
  for (const auto &of : constructors) {
    const auto construct = reinterpret_cast<void (*)(void *)>(dlsym(RTLD_DEFAULT, of.name));
    ASSERT_NE(construct, nullptr) << of.name;
    alignas(16) unsigned char memory[1256];
    std::memset(memory, kPoison, sizeof memory);
    construct(memory);
    EXPECT_EQ(*reinterpret_cast<void **>(memory + 240), nullptr);  // B
    EXPECT_EQ(*reinterpret_cast<uint32_t *>(memory + of.bits),
              FLYDSL_AOT_AOTRITON_MINOR < 14 ? 0xCDCDCDCD : 0U);
    for (size_t at = of.bytes; at < sizeof memory; ++at) ASSERT_EQ(memory[at], kPoison) << at;
  }
}

}  // namespace
}  // namespace flydsl::test
