// Products of 16 x 16 matrices by whatever matrix instruction the architecture has (matrix_layout.hip.h): operands from LDS, products,
// sums to operands. For kernels that are written once for all of them.
#pragma once

#include "common/elements.hip.h"
#include "common/lds.hip.h"
#include "common/matrix_layout.hip.h"
#include "common/mfma.hip.h"
#include "common/threads.hip.h"

namespace flydsl::kernels {

#if defined(__GFX9__)
using MatrixLayout = MfmaLayout;
#elif defined(__GFX11__)
using MatrixLayout = WmmaLayoutGfx11;
#elif defined(__gfx1250__)
using MatrixLayout = WmmaLayoutGfx1250;
#else
using MatrixLayout = WmmaLayoutGfx12;
#endif
static_assert(MatrixLayout::lanes == kWaveSize);

using MatrixOperand = vec<u32, MatrixLayout::elements / 2>;
using MatrixSums = vec<float, MatrixLayout::sums>;
constexpr u32 kMatrixDepth = MatrixLayout::depth;
constexpr u32 kMatrixBlocks = kMatrixDepth / 16;         // of sums that make an operand
constexpr u32 kMatrixGroups = MatrixLayout::lanes / 16;  // of lanes that share columns

template <class Element>
FLYDSL_DEVICE MatrixSums matrix_product(MatrixOperand a, MatrixOperand b, MatrixSums c) {
  [[maybe_unused]] constexpr bool is_bf16 = __is_same(Element, bf16);
#if defined(__GFX9__)
  const u32x4 of_a = {a[0], a[1], 0, 0}, of_b = {b[0], b[1], 0, 0};
  return mfma_16x16x16<Element>(of_a, of_b, 0, c);
#elif defined(__gfx1250__)
  using Elements = vec<typename Element::scalar, 16>;
  if constexpr (is_bf16)
    return __builtin_amdgcn_wmma_f32_16x16x32_bf16(false, bits_as<Elements>(a), false,
                                                   bits_as<Elements>(b), 0, c, false, false);
  else
    return __builtin_amdgcn_wmma_f32_16x16x32_f16(false, bits_as<Elements>(a), false,
                                                  bits_as<Elements>(b), 0, c, false, false);
#else
  constexpr int kElements = MatrixLayout::elements;
  using Halves = vec<_Float16, kElements>;
  using Shorts = vec<short, kElements>;
#if defined(__GFX11__)
  if constexpr (is_bf16)
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(bits_as<Shorts>(a), bits_as<Shorts>(b), c);
  else
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(bits_as<Halves>(a), bits_as<Halves>(b), c);
#else
  if constexpr (is_bf16)
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(bits_as<Shorts>(a), bits_as<Shorts>(b),
                                                             c);
  else
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(bits_as<Halves>(a), bits_as<Halves>(b),
                                                            c);
#endif
#endif
}

// The operand whose elements of the lane's row (of A; column of B) are at place(k), 16-bit neighbours in k from there on; LDS that is
// aligned to `run` of them.
template <class Place>
FLYDSL_DEVICE MatrixOperand load_operand(u32 lane, Place place) {
  MatrixOperand operand;
#pragma unroll
  for (u32 j = 0; j < MatrixLayout::elements; j += MatrixLayout::run) {
    const lds_ptr<const char> from = place(MatrixLayout::k_of(lane, j));
    using Words = vec<u32, MatrixLayout::run / 2>;
    const Words words = *(lds_ptr<const Words>)from;
#pragma unroll
    for (u32 word = 0; word < MatrixLayout::run / 2; ++word) operand[j / 2 + word] = words[word];
  }
  return operand;
}
// The other way.
template <class Place>
FLYDSL_DEVICE void store_operand(u32 lane, MatrixOperand operand, Place place) {
#pragma unroll
  for (u32 j = 0; j < MatrixLayout::elements; j += MatrixLayout::run) {
    using Words = vec<u32, MatrixLayout::run / 2>;
    Words words;
#pragma unroll
    for (u32 word = 0; word < MatrixLayout::run / 2; ++word) words[word] = operand[j / 2 + word];
    *(lds_ptr<Words>)place(MatrixLayout::k_of(lane, j)) = words;
  }
}

// Sums, rounded to nearest even, as an operand whose k are their rows: those of `first` and, where an operand is as deep, blocks after it.
template <class Element, int blocks>
FLYDSL_DEVICE MatrixOperand operand_of_sums(u32 lane, const MatrixSums (&sums)[blocks], u32 first) {
  MatrixOperand operand;
#if defined(__GFX11__)
  MatrixSums other;
#pragma unroll
  for (u32 i = 0; i < MatrixLayout::sums; ++i)
    other[i] = bits_as<float>(lane_xor_bits(bits_as<u32>(sums[first][i]), 16));
#endif
  const auto sum = [&](u32 j) FLYDSL_INLINED {
    const SumSource source = MatrixLayout::source_of(lane, j);
#if defined(__GFX11__)
    return source.of_other_half ? other[source.sum] : sums[first][source.sum];
#else
    return sums[first + source.block][source.sum];
#endif
  };
#pragma unroll
  for (u32 j = 0; j < MatrixLayout::elements; j += 2)
    operand[j / 2] = round_pair<Element>(sum(j), sum(j + 1));
  return operand;
}

// Over the lanes that share a column, in each of them. A NaN loses against a number in the maximum.
FLYDSL_DEVICE float max_of_column(float value) {
#pragma unroll
  for (u32 mask = 16; mask < MatrixLayout::lanes; mask *= 2)
    value = __builtin_fmaxf(value, bits_as<float>(lane_xor_bits(bits_as<u32>(value), mask)));
  return value;
}
FLYDSL_DEVICE float sum_of_column(float value) {
#pragma unroll
  for (u32 mask = 16; mask < MatrixLayout::lanes; mask *= 2)
    value += bits_as<float>(lane_xor_bits(bits_as<u32>(value), mask));
  return value;
}
// Bit c is whether any lane of column c has the predicate.
FLYDSL_DEVICE u32 columns_where(bool predicate) {
  const u64 lanes = lanes_where(predicate);
  u32 columns = static_cast<u32>(lanes) | static_cast<u32>(lanes >> 32);
  columns |= columns >> 16;
  return columns & 0xffff;
}

}  // namespace flydsl::kernels
