#include "v2src/aotriton/sequences.h"

#include <algorithm>

#include "v2src/aotriton/error.h"
#include "v2src/aotriton/tensors.h"

namespace flydsl::aotriton {
namespace {

constexpr int64_t kUnknown = -1;

int64_t size_of(const TensorView<4> &view, int axis) {
  return static_cast<int64_t>(view.size(axis));
}
int64_t count_of(const TensorView<1> &array) {
  return array ? static_cast<int64_t>(array.size(0)) : 0;
}

struct NamedSide {
  char name;
  const Side &side;
  const TensorView<4> &tensor;
};

flydsl_aot_status check_mode(const Call &call, const NamedSide &of) {
  const Side &side = of.side;
  const char *fault = nullptr;
  if (side.length > Side::kIndividual || side.position > Side::kArray)
    fault = "has a length or position that does not exist";
  else if (side.position == Side::kReuse && side.length != Side::kCumulative)
    fault = "takes positions from lengths that are not cumulative";
  else if (side.length != Side::kMax && !side.lengths)
    fault = "has no array of lengths (seqinfo 0)";
  else if (side.position == Side::kArray && !side.positions)
    fault = "has no array of positions (seqinfo 1)";
  if (fault) return refuse(call.function, FLYDSL_AOT_INVALID_ARGUMENT, "side %c %s", of.name, fault);
  if (!side.stacked && side.position != Side::kImplied)
    fault = "has positions within batches";
  else if (side.position == Side::kArray && side.length == Side::kMax)
    fault = "has positions, but no lengths";
  if (fault) {
    return refuse(call.function, FLYDSL_AOT_UNSUPPORTED_FEATURE, "side %c %s: not supported", of.name,
                  fault);
  }
  return FLYDSL_AOT_OK;
}

// As far as one side tells.
int64_t batches_of(const NamedSide &of) {
  const Side &side = of.side;
  if (!side.stacked) return size_of(of.tensor, 0);
  if (side.length == Side::kCumulative) return count_of(side.lengths) - 1;
  if (side.length == Side::kIndividual) return count_of(side.lengths);
  return kUnknown;
}

// The first `count` numbers, which must be there.
flydsl_aot_status take(const Call &call, const NamedSide &of, const TensorView<1> &array,
                       const char *what, int64_t count, flydsl_aot_tensor *numbers) {
  if (count_of(array) < count) {
    return refuse(call.function, FLYDSL_AOT_INVALID_SHAPE,
                  "the %s of side %c are %lld numbers; %lld are needed", what, of.name,
                  static_cast<long long>(count_of(array)), static_cast<long long>(count));
  }
  *numbers = required(array);
  numbers->sizes[0] = count;
  return FLYDSL_AOT_OK;
}

flydsl_aot_status place_arrays(const Call &call, const NamedSide &of, Rows *rows) {
  const Side &side = of.side;
  const int64_t batches = rows->batches;
  if (side.position == Side::kReuse)
    return take(call, of, side.lengths, "lengths", batches + 1, &rows->starts);
  if (side.position == Side::kArray) {
    const flydsl_aot_status status =
        take(call, of, side.positions, "positions", batches + 1, &rows->starts);
    if (status != FLYDSL_AOT_OK) return status;
  }
  if (side.length == Side::kMax) return FLYDSL_AOT_OK;
  rows->used_is_cumulative = side.length == Side::kCumulative;
  return take(call, of, side.lengths, "lengths", batches + rows->used_is_cumulative, &rows->used);
}

flydsl_aot_status place_side(const Call &call, const NamedSide &of, int64_t batches, Rows *rows) {
  const Side &side = of.side;
  const int64_t in_tensor = size_of(of.tensor, 2);
  rows->batches = batches;
  if (side.varies() && side.longest < 0) {
    return refuse(call.function, FLYDSL_AOT_INVALID_ARGUMENT, "Max_seqlen_%c is %d; it must be 0 or more",
                  of.name, side.longest);
  }
  if (size_of(of.tensor, 0) != 1 && side.stacked) {
    return refuse(call.function, FLYDSL_AOT_INVALID_SHAPE,
                  "%c has %lld batches; stacked sequences are one", of.name,
                  static_cast<long long>(size_of(of.tensor, 0)));
  }
  if (!side.stacked && size_of(of.tensor, 0) < batches) {
    return refuse(call.function, FLYDSL_AOT_INVALID_SHAPE, "%c has %lld batches for %lld sequences",
                  of.name, static_cast<long long>(size_of(of.tensor, 0)),
                  static_cast<long long>(batches));
  }
  rows->packed = side.stacked && side.position != Side::kImplied;
  rows->uniform = side.stacked && side.position == Side::kImplied;
  rows->total = in_tensor;
  rows->longest = !side.varies()              ? in_tensor
                  : rows->packed || side.stacked ? side.longest
                                                 : std::min<int64_t>(side.longest, in_tensor);
  if (rows->uniform && batches > 0 && rows->longest > in_tensor / batches) {
    return refuse(call.function, FLYDSL_AOT_INVALID_SHAPE,
                  "%c has %lld rows; %lld sequences of %lld do not fit", of.name,
                  static_cast<long long>(in_tensor), static_cast<long long>(batches),
                  static_cast<long long>(rows->longest));
  }
  return place_arrays(call, of, rows);
}

// Far beyond what the operators take: products of sizes fit 64 bits.
constexpr uint64_t kMostOfAnAxis = uint64_t{1} << 31;

flydsl_aot_status check_sizes(const Call &call, const NamedSide &of) {
  for (int axis = 0; axis < 4; ++axis) {
    if (of.tensor.size(axis) <= kMostOfAnAxis) continue;
    return refuse(call.function, FLYDSL_AOT_UNSUPPORTED_SIZE,
                  "%c has size %llu on axis %d; at most 2^31", of.name,
                  static_cast<unsigned long long>(of.tensor.size(axis)), axis);
  }
  return FLYDSL_AOT_OK;
}

}  // namespace

flydsl_aot_tensor Rows::tensor(const TensorView<4> &view) const {
  flydsl_aot_tensor result = required(view);
  if (packed) return without_first_axis(result);
  result.sizes[0] = batches;
  if (uniform) result.strides[0] = static_cast<int64_t>(static_cast<uint64_t>(longest) * view.stride(2));
  narrow(&result, 2, longest);
  return result;
}

flydsl_aot_status place_sequences(const Call &call, Sequences *sequences) {
  if (call.bad_bits || call.lse_layout > 1) {
    return refuse(call.function, FLYDSL_AOT_INVALID_ARGUMENT,
                  "varlen_bits has reserved bits, or an lse_layout that does not exist");
  }
  const NamedSide q{'q', call.side_q, call.q}, k{'k', call.side_k, call.k};
  for (const NamedSide &of : {q, k}) {
    flydsl_aot_status status = check_sizes(call, of);
    if (status == FLYDSL_AOT_OK) status = check_mode(call, of);
    if (status != FLYDSL_AOT_OK) return status;
  }
  int64_t batches = batches_of(q);
  if (batches == kUnknown) batches = batches_of(k);
  if (batches < 0 || static_cast<uint64_t>(batches) > kMostOfAnAxis) {
    return refuse(call.function, FLYDSL_AOT_INVALID_ARGUMENT,
                  "nothing says how many sequences there are, or more than 2^31");
  }
  const flydsl_aot_status status = place_side(call, q, batches, &sequences->q);
  return status == FLYDSL_AOT_OK ? place_side(call, k, batches, &sequences->k) : status;
}

flydsl_aot_status place_lse(const Call &call, const Rows &rows, flydsl_aot_tensor *lse) {
  *lse = {};
  if (!call.lse) return FLYDSL_AOT_OK;
  const int64_t heads = size_of(call.q, 1);
  if (call.lse.size(0) > kMostOfAnAxis || call.lse.size(1) > kMostOfAnAxis) {
    return refuse(call.function, FLYDSL_AOT_INVALID_SHAPE, "L is %llu x %llu",
                  static_cast<unsigned long long>(call.lse.size(0)),
                  static_cast<unsigned long long>(call.lse.size(1)));
  }
  const int64_t lines = static_cast<int64_t>(call.lse.size(0)),
                columns = static_cast<int64_t>(call.lse.size(1)),
                line = static_cast<int64_t>(call.lse.stride(0)),
                column = static_cast<int64_t>(call.lse.stride(1));
  const bool one_line_a_head = rows.packed || rows.uniform;  // of all sequences
  const int64_t batches = rows.batches, longest = rows.longest;
  const int64_t in_line = one_line_a_head ? rows.total : longest;
  const int64_t needed_lines = one_line_a_head ? heads : batches * heads;
  lse->data = call.lse.data_ptr();
  lse->dtype = dtype_of(call.lse.dtype());
  lse->rank = rows.packed ? 2 : 3;
  const auto set = [lse](std::initializer_list<int64_t> sizes, std::initializer_list<int64_t> strides) {
    std::copy(sizes.begin(), sizes.end(), lse->sizes);
    std::copy(strides.begin(), strides.end(), lse->strides);
  };
  if (call.lse_layout == 1 && lines * columns >= needed_lines * in_line) {  // TH, without gaps
    if (rows.packed)
      set({heads, in_line}, {1, heads});
    else
      set({batches, heads, longest}, {longest * heads, 1, heads});
    return FLYDSL_AOT_OK;
  }
  if (call.lse_layout == 0 && lines == needed_lines && columns >= in_line) {
    if (rows.packed)
      set({heads, in_line}, {line, column});
    else
      set({batches, heads, longest}, {rows.uniform ? longest * column : heads * line, line, column});
    return FLYDSL_AOT_OK;
  }
  // Of another shape, but large enough and without gaps: AOTriton takes it as memory for lines of all rows, in both passes.
  if (call.lse_layout == 0 && rows.packed && lines * columns >= heads * in_line && column == 1 &&
      line == columns) {
    set({heads, in_line}, {in_line, 1});
    return FLYDSL_AOT_OK;
  }
  return refuse(call.function, FLYDSL_AOT_INVALID_SHAPE,
                "L is %lld x %lld; it must be %lld x %lld (heads and rows of %s)",
                static_cast<long long>(lines), static_cast<long long>(columns),
                static_cast<long long>(needed_lines), static_cast<long long>(in_line),
                one_line_a_head ? "all sequences" : "each batch");
}

}  // namespace flydsl::aotriton
