// What a call of an attention operator on a case gave.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "flydsl_aot/flydsl_aot.h"

namespace flydsl::verify {

// What outputs hold before the call.
inline constexpr uint32_t kOutputPoison = 0xabababab;
inline const float kLsePoison = std::bit_cast<float>(kOutputPoison);

// Of any call.
struct CallResult {
  flydsl_aot_status status = FLYDSL_AOT_OK;
  std::string message;        // of a refused call
  std::string kernel;         // that the query named
  std::string stray_write;    // empty: no byte outside the outputs was changed, and no input byte
  std::string contradiction;  // empty: query and call agree, and the device finished the call
  bool outputs_untouched = false;
  bool device_failed = false;  // the call's kernel faulted: the device is not to be used any more
};

// Of the forward pass.
struct AttentionResult : CallResult {
  // Dense, (B, Hq, Sq, D) and (B, Hq, Sq), the latter empty if not wanted. Rows past a sequence's
  // length hold the poison 0xAB..., or are a stray write.
  std::vector<uint16_t> out;
  std::vector<float> lse;
  std::vector<uint8_t> kept;   // dense (B, Hq, Sq, Sk); empty if not wanted
  std::vector<uint64_t> used;  // seed and offset, if given by the device
};

// Bit-for-bit equality of out and lse (NaN equals NaN of the same bits).
bool same_bits(const AttentionResult &a, const AttentionResult &b);

}  // namespace flydsl::verify
