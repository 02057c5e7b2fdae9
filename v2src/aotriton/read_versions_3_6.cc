// Parameters of versions 3 and 6 (AOTriton 0.12 and 0.13). Two files of the library see another attn_fwd_params each; neither has
// anything of its name that the linker could mix up.
#define AOTRITON_VERSION_MINOR 13
#include "v2src/aotriton/read.h"

namespace flydsl::aotriton {
namespace {

namespace flash = ::aotriton::v3::flash;

// The arrays that are there decide, as in AOTriton, where callers may leave varlen_type at its default; only for padded sequences
// does it count. What is true of q is true of k and v.
template <typename Params>
void read_sides(const Params &from, Call *to) {
  to->side_q.lengths = from.cu_seqlens_q;
  to->side_k.lengths = from.cu_seqlens_k;
  to->side_q.positions = from.seq_strides_q;
  to->side_k.positions = from.seq_strides_k;
  if (!from.cu_seqlens_q) return;
  const bool padded = from.varlen_type == flash::VarlenType::PaddedVarlen;
  const bool strided = !padded && from.seq_strides_q;
  for (Side *side : {&to->side_q, &to->side_k}) {
    side->stacked = !padded;
    side->length = Side::kCumulative;
    side->position = padded ? Side::kImplied : strided ? Side::kArray : Side::kReuse;
  }
}

}  // namespace

ForwardCall read_forward_3(const void *params) {
  using Params = flash::attn_fwd_params;
  static_assert(Params::kVersion == 3);
  return read_forward<Params>(params, read_sides<Params>);
}

BackwardCall read_backward_6(const void *params) {
  using Params = flash::attn_bwd_params;
  static_assert(Params::kVersion == 6);
  return read_backward<Params>(params, read_sides<Params>);
}

}  // namespace flydsl::aotriton
