// Parameters of versions 4 and 7 (AOTriton 0.14).
#define AOTRITON_VERSION_MINOR 14
#include "v2src/aotriton/read.h"

namespace flydsl::aotriton {
namespace {

namespace flash = ::aotriton::v3::flash;

void read_mode(flash::VarlenMode from, Side *to) {
  to->stacked = from.stacked;
  to->length = from.length;
  to->position = from.position;
}

template <typename Params>
void read_sides(const Params &from, Call *to) {
  const flash::VarlenBits bits = from.varlen_bits;
  read_mode(bits.qmode, &to->side_q);
  read_mode(bits.kmode, &to->side_k);
  to->side_q.lengths = from.seqinfo_q0;
  to->side_k.lengths = from.seqinfo_k0;
  to->side_q.positions = from.seqinfo_q1;
  to->side_k.positions = from.seqinfo_k1;
  to->lse_layout = bits.lse_layout;
  to->bad_bits = bits.reserved || bits.qmode.reserved || bits.kmode.reserved;
}

}  // namespace

ForwardCall read_forward_4(const void *params) {
  using Params = flash::attn_fwd_params;
  static_assert(Params::kVersion == 4);
  return read_forward<Params>(params, read_sides<Params>);
}

BackwardCall read_backward_7(const void *params) {
  using Params = flash::attn_bwd_params;
  static_assert(Params::kVersion == 7);
  return read_backward<Params>(params, read_sides<Params>);
}

}  // namespace flydsl::aotriton
