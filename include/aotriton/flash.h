/* Attention, forward and backward, with AOTriton's interface. What each field means, which are read when, and what is refused is in
 * docs/aotriton.md; errors are hipError_t values with their usual meanings, the text is flydsl_aot_last_error()'s
 * (flydsl_aot/status.h). */
#ifndef AOTRITON_V3_API_FLASH_ATTN_H
#define AOTRITON_V3_API_FLASH_ATTN_H

#include "aotriton/config.h"
#include "aotriton/runtime.h"
#include "aotriton/util.h"

namespace AOTRITON_NS::v2::flash {

/* hipSuccess if this library has kernels for the stream's device. */
AOTRITON_API hipError_t check_gpu(AOTRITON_NS::Stream stream);

/* Writes 0.5 where a weight is kept by dropout and -0.5 where not, for tests: r is (batch, heads, Sq, Sk) of any floating type, its
 * last stride 1. Waits for the device; not within a graph capture. */
AOTRITON_API hipError_t debug_simulate_encoded_softmax(AOTRITON_NS::TensorView<4> r, float dropout_p,
                                                       AOTRITON_NS::TensorView<0> philox_seed,
                                                       AOTRITON_NS::TensorView<0> philox_offset1,
                                                       uint64_t philox_offset2,
                                                       AOTRITON_NS::Stream stream);

}  // namespace AOTRITON_NS::v2::flash

namespace AOTRITON_NS::v3::flash {

using T4 = AOTRITON_NS::TensorView<4>;
using T2 = AOTRITON_NS::TensorView<2>;
using T1 = AOTRITON_NS::TensorView<1>;
using T0 = AOTRITON_NS::TensorView<0>;
using LT2 = AOTRITON_NS::LazyTensor<2>;
using LT4 = AOTRITON_NS::LazyTensor<4>;

struct attn_options {
  /* -1: any. 0 or more forbids other backends: 0 (and 1 of attn_bwd) native kernels, 1 of attn_fwd and 2 of attn_bwd assembly. */
  int force_backend_index = -1;
  bool deterministic = false; /* always so here */
};

struct CausalType {
  static constexpr int8_t None = 0;
  static constexpr int8_t WindowedAttention = 3;
};

/* Query i sees the keys i - left <= j <= i + right. As window_left both of these are no bound; as window_right they are 0, and
 * Sk - Sq of each sequence. */
struct WindowValue {
  static constexpr int32_t TopLeftAligned = -2147483647;
  static constexpr int32_t BottomRightAligned = -2147483646;
};

#if AOTRITON_VERSION_MINOR < 14

struct VarlenType {
  static constexpr int8_t None = 0;
  static constexpr int8_t CompactVarlen = 1; /* (1, H, total, D): sequence z is the rows cu_seqlens[z] to cu_seqlens[z + 1] - 1 */
  static constexpr int8_t PaddedVarlen = 2;  /* (N, H, S, D): cu_seqlens[z + 1] - cu_seqlens[z] rows from the first */
  static constexpr int8_t StridedVarlen = 3; /* (1, H, total, D): as many from row seq_strides[z] on */
};

#else

/* How the sequences of q, and those of k and v, lie: three choices for each side. */
struct VarlenStacked {
  static constexpr uint32_t BHSD = 0; /* a batch each */
  static constexpr uint32_t THD = 1;  /* (1, H, total, D) */
};
struct VarlenLength {
  static constexpr uint32_t MAX = 0;        /* Max_seqlen */
  static constexpr uint32_t CUMULATIVE = 1; /* seqinfo_0[z + 1] - seqinfo_0[z] */
  static constexpr uint32_t INDIVIDUAL = 2; /* seqinfo_0[z] */
};
struct VarlenPosition {
  static constexpr uint32_t IMPLIED = 0; /* 0; z * Max_seqlen of THD */
  static constexpr uint32_t REUSE = 1;   /* seqinfo_0[z], of CUMULATIVE */
  static constexpr uint32_t ARRAY = 2;   /* seqinfo_1[z] */
};
struct VarlenLseLayout {
  static constexpr uint32_t HT = 0; /* (H, T) of each batch */
  static constexpr uint32_t TH = 1; /* (T, H) */
};
struct VarlenMode {
  uint8_t stacked : 1;
  uint8_t length : 2;
  uint8_t position : 2;
  uint8_t reserved : 3;
};
struct alignas(uint32_t) VarlenBits {
  VarlenMode qmode;
  VarlenMode kmode;
  uint16_t lse_layout : 2;
  uint16_t reserved : 14;
};

#endif

/* The constructors leave what has no initialiser as it is: a field is read only where another says that it counts. */
struct attn_fwd_params {
  T4 Q;         /* (B, Hq, Sq, D) */
  T4 K;         /* (B, Hkv, Sk, D) */
  T4 V;         /* (B, Hkv, Sk, Dv) */
  T4 B;         /* bias, (B, Hq, Sq, Sk) */
  T2 A;         /* ALiBi slopes, (B, Hq), fp32 */
  float Sm_scale;
  T2 L;         /* LSE, fp32: (B * Hq, Sq), packed (Hq, total_q) */
  T4 Out;       /* (B, Hq, Sq, Dv) */
#if AOTRITON_VERSION_MINOR < 14
  T1 cu_seqlens_q;
  T1 cu_seqlens_k;
  int32_t Max_seqlen_q = 0;
  int32_t Max_seqlen_k = 0;
  T1 seq_strides_q;
  T1 seq_strides_k;
#else
  T1 seqinfo_q0;
  T1 seqinfo_k0;
  int32_t Max_seqlen_q = 0;
  int32_t Max_seqlen_k = 0;
  T1 seqinfo_q1;
  T1 seqinfo_k1;
#endif
  float dropout_p;
  T0 philox_seed_ptr;
  T0 philox_offset1;
  uint64_t philox_offset2;
  T0 philox_seed_output;
  T0 philox_offset_output;
  T4 encoded_softmax;
  T0 persistent_atomic_counter; /* not used */
  int8_t causal_type;
#if AOTRITON_VERSION_MINOR < 14
  int8_t varlen_type = 0;
#endif
  int32_t window_left;
  int32_t window_right;
#if AOTRITON_VERSION_MINOR < 14
  static constexpr int32_t kVersion = 3;
#else
  VarlenBits varlen_bits = {};
  static constexpr int32_t kVersion = 4;
#endif

  /* Inline, so that it is of the layout above whichever one the library was built for. */
  __attribute__((visibility("hidden"))) attn_fwd_params() {}
};

struct attn_bwd_params {
  T4 Q;
  T4 K;
  T4 V;
  T4 B;
  float Sm_scale;
  T4 Out;
  T4 DO;
  T4 DK;
  T4 DV;
  T4 DQ;
  T4 DB;
  T2 L;
  mutable LT2 D; /* fp32, as L; not needed */
#if AOTRITON_VERSION_MINOR < 14
  T1 cu_seqlens_q;
  T1 cu_seqlens_k;
  int32_t Max_seqlen_q = 0;
  int32_t Max_seqlen_k = 0;
  T1 seq_strides_q;
  T1 seq_strides_k;
#else
  T1 seqinfo_q0;
  T1 seqinfo_k0;
  int32_t Max_seqlen_q = 0;
  int32_t Max_seqlen_k = 0;
  T1 seqinfo_q1;
  T1 seqinfo_k1;
#endif
  float dropout_p;
  T0 philox_seed_ptr;
  T0 philox_offset1;
  uint64_t philox_offset2;
  int8_t causal_type;
#if AOTRITON_VERSION_MINOR < 14
  int8_t varlen_type = 0;
#endif
  int32_t window_left;
  int32_t window_right;
  mutable LT4 DQ_ACC; /* fp32, as DQ: the workspace, where it is large enough */
#if AOTRITON_VERSION_MINOR < 14
  static constexpr int32_t kVersion = 6;
#else
  VarlenBits varlen_bits = {};
  static constexpr int32_t kVersion = 7;
#endif

  __attribute__((visibility("hidden"))) attn_bwd_params() {}
};

/* params_version: kVersion of the header that the caller was compiled with. */
AOTRITON_API hipError_t attn_fwd(const attn_fwd_params &params, int32_t params_version,
                                 AOTRITON_NS::Stream stream, const attn_options *options = nullptr);
AOTRITON_API hipError_t attn_bwd(const attn_bwd_params &params, int32_t params_version,
                                 AOTRITON_NS::Stream stream, const attn_options *options = nullptr);

}  // namespace AOTRITON_NS::v3::flash

#endif
