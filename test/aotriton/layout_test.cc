// Sizes, offsets and numbers that programs compiled with AOTriton's headers have in them (LP64). Fails to compile if one moves.
#include <aotriton/flash.h>

#include <cstddef>
#include <type_traits>

namespace {

using namespace aotriton;
using namespace aotriton::v3::flash;

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size")
#define FIELD(type, field, offset) \
  static_assert(offsetof(type, field) == (offset), #type "." #field " has moved")
#define NUMBER(name, value) static_assert((name) == (value), #name " has another number")

SIZE(DType, 4);
NUMBER(kUnknown, 0);
NUMBER(kFloat32, 1);
NUMBER(kFloat16, 2);
NUMBER(kBFloat16, 3);
NUMBER(kInt8, 10);
NUMBER(kInt16, 11);
NUMBER(kInt32, 12);
NUMBER(kInt64, 13);
NUMBER(kUInt8, 20);
NUMBER(kUInt16, 21);
NUMBER(kUInt32, 22);
NUMBER(kUInt64, 23);

SIZE(Stream, 8);
static_assert(std::is_convertible_v<hipStream_t, Stream>);
SIZE(T0, 16);
SIZE(T1, 32);
SIZE(T2, 48);
SIZE(TensorView<3>, 64);
SIZE(T4, 80);
SIZE(LT2, 72);
SIZE(LT4, 104);
FIELD(LT4, cookie, 0);
FIELD(LT4, acquire, 8);
FIELD(LT4, dispose, 16);
FIELD(LT4, eager, 24);
SIZE(attn_options, 8);
FIELD(attn_options, force_backend_index, 0);
FIELD(attn_options, deterministic, 4);

NUMBER(static_cast<uint64_t>(GPU_AMD_ARCH_GFX950_MOD0), 0x1002'0950'0000ULL);
NUMBER(CausalType::None, 0);
NUMBER(CausalType::WindowedAttention, 3);
NUMBER(WindowValue::TopLeftAligned, -2147483647);
NUMBER(WindowValue::BottomRightAligned, -2147483646);

SIZE(attn_fwd_params, 832);
FIELD(attn_fwd_params, Q, 0);
FIELD(attn_fwd_params, K, 80);
FIELD(attn_fwd_params, V, 160);
FIELD(attn_fwd_params, B, 240);
FIELD(attn_fwd_params, A, 320);
FIELD(attn_fwd_params, Sm_scale, 368);
FIELD(attn_fwd_params, L, 376);
FIELD(attn_fwd_params, Out, 424);
FIELD(attn_fwd_params, Max_seqlen_q, 568);
FIELD(attn_fwd_params, Max_seqlen_k, 572);
FIELD(attn_fwd_params, dropout_p, 640);
FIELD(attn_fwd_params, philox_seed_ptr, 648);
FIELD(attn_fwd_params, philox_offset1, 664);
FIELD(attn_fwd_params, philox_offset2, 680);
FIELD(attn_fwd_params, philox_seed_output, 688);
FIELD(attn_fwd_params, philox_offset_output, 704);
FIELD(attn_fwd_params, encoded_softmax, 720);
FIELD(attn_fwd_params, persistent_atomic_counter, 800);
FIELD(attn_fwd_params, causal_type, 816);
FIELD(attn_fwd_params, window_left, 820);
FIELD(attn_fwd_params, window_right, 824);

FIELD(attn_bwd_params, Q, 0);
FIELD(attn_bwd_params, K, 80);
FIELD(attn_bwd_params, V, 160);
FIELD(attn_bwd_params, B, 240);
FIELD(attn_bwd_params, Sm_scale, 320);
FIELD(attn_bwd_params, Out, 328);
FIELD(attn_bwd_params, DO, 408);
FIELD(attn_bwd_params, DK, 488);
FIELD(attn_bwd_params, DV, 568);
FIELD(attn_bwd_params, DQ, 648);
FIELD(attn_bwd_params, DB, 728);
FIELD(attn_bwd_params, L, 808);
FIELD(attn_bwd_params, D, 856);
FIELD(attn_bwd_params, Max_seqlen_q, 992);
FIELD(attn_bwd_params, Max_seqlen_k, 996);
FIELD(attn_bwd_params, dropout_p, 1064);
FIELD(attn_bwd_params, philox_seed_ptr, 1072);
FIELD(attn_bwd_params, philox_offset1, 1088);
FIELD(attn_bwd_params, philox_offset2, 1104);
FIELD(attn_bwd_params, causal_type, 1112);
FIELD(attn_bwd_params, window_left, 1116);
FIELD(attn_bwd_params, window_right, 1120);
FIELD(attn_bwd_params, DQ_ACC, 1128);

#if AOTRITON_VERSION_MINOR < 14
NUMBER(attn_fwd_params::kVersion, 3);
NUMBER(attn_bwd_params::kVersion, 6);
SIZE(attn_bwd_params, 1232);
FIELD(attn_fwd_params, cu_seqlens_q, 504);
FIELD(attn_fwd_params, cu_seqlens_k, 536);
FIELD(attn_fwd_params, seq_strides_q, 576);
FIELD(attn_fwd_params, seq_strides_k, 608);
FIELD(attn_fwd_params, varlen_type, 817);
FIELD(attn_bwd_params, cu_seqlens_q, 928);
FIELD(attn_bwd_params, cu_seqlens_k, 960);
FIELD(attn_bwd_params, seq_strides_q, 1000);
FIELD(attn_bwd_params, seq_strides_k, 1032);
FIELD(attn_bwd_params, varlen_type, 1113);
#else
NUMBER(attn_fwd_params::kVersion, 4);
NUMBER(attn_bwd_params::kVersion, 7);
SIZE(attn_bwd_params, 1240);
FIELD(attn_fwd_params, seqinfo_q0, 504);
FIELD(attn_fwd_params, seqinfo_k0, 536);
FIELD(attn_fwd_params, seqinfo_q1, 576);
FIELD(attn_fwd_params, seqinfo_k1, 608);
FIELD(attn_fwd_params, varlen_bits, 828);
FIELD(attn_bwd_params, seqinfo_q0, 928);
FIELD(attn_bwd_params, seqinfo_k0, 960);
FIELD(attn_bwd_params, seqinfo_q1, 1000);
FIELD(attn_bwd_params, seqinfo_k1, 1032);
FIELD(attn_bwd_params, varlen_bits, 1232);
SIZE(VarlenMode, 1);
SIZE(VarlenBits, 4);
static_assert(alignof(VarlenBits) == 4);
#endif

}  // namespace
