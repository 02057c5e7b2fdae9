// Valid problems with the optional features of attention_forward, to start from.
#pragma once

#include "test/v2src/attention_fixture.h"

namespace flydsl::test {

using Params = flydsl_aot_attention_forward_params;

constexpr uint64_t kNumbers = 0x600000000;

inline flydsl_aot_tensor numbers(int64_t count, uint64_t where = kNumbers) {
  return flydsl_aot::tensor(address(where), FLYDSL_AOT_INT32, {count});
}

// q and out, and lse, packed: two sequences over 600 rows.
inline void pack_q(Params &p) {
  p.q = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {6, 600, 64});
  p.out = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_BF16, {6, 600, 64});
  p.lse = flydsl_aot::tensor(address(kLse), FLYDSL_AOT_FP32, {6, 600});
  p.cu_seqlens_q = numbers(3);
  p.max_seqlen_q = 400;
}
inline void pack_k(Params &p) {
  p.k = flydsl_aot::tensor(address(kK), FLYDSL_AOT_BF16, {2, 900, 64});
  p.v = flydsl_aot::tensor(address(kV), FLYDSL_AOT_BF16, {2, 900, 64});
  p.cu_seqlens_k = numbers(3, kNumbers + 64);
  p.max_seqlen_k = 500;
}

constexpr uint64_t kTerms = 0x700000000;

inline flydsl_aot_tensor term(flydsl_aot_dtype dtype, const std::vector<int64_t> &sizes) {
  return flydsl_aot::tensor(address(kTerms), dtype, sizes);
}

constexpr uint64_t kRandom = 0x800000000;

inline const uint64_t *random_numbers(uint64_t where) {
  return static_cast<const uint64_t *>(address(where));
}

inline void narrow_kv(Params &p) {
  p.k.dtype = p.v.dtype = FLYDSL_AOT_E4M3;
}

// k and v in 40 blocks of 16 keys, 32 of which a sequence may have.
inline void page_k(Params &p) {
  p.k = flydsl_aot::tensor(address(kK), FLYDSL_AOT_BF16, {40, 2, 16, 64});
  p.v = flydsl_aot::tensor(address(kV), FLYDSL_AOT_BF16, {40, 2, 16, 64});
  p.block_table = flydsl_aot::tensor(address(kNumbers + 256), FLYDSL_AOT_INT32, {2, 32});
  p.seqused_k = numbers(2);
}

}  // namespace flydsl::test
