// What the attention operators' --set arguments have in common. `used` receives each parameter as used.
#pragma once

#include <string>
#include <vector>

#include "tools/operators.h"

namespace flydsl::tools {

// Order of the axes of q, k, v and out in their files.
enum Layout { kBhsd, kBshd };
Layout layout_of(const Settings &settings);

// The parameters that both operators have, and those of the file layout and the types.
std::vector<ParameterSpec> shared_parameters();

// A dense array in the given memory layout, as the library wants to see it: axes in (B, H, S, D)
// or (H, total, D) order.
flydsl_aot_tensor view_of(flydsl_aot_dtype dtype, const std::vector<int64_t> &shape, Layout layout);

// The arrays of a problem's inputs, as tensors.
class InputBinder {
 public:
  InputBinder(const HostArrays &inputs, Problem *problem) : inputs_(inputs), problem_(problem) {}

  bool given(const char *name) const { return inputs_.count(name) > 0; }
  // Binds it if it is given. Refuses an array with fewer or more axes than that; `what` names them.
  void bind(const char *name, flydsl_aot_tensor *tensor, size_t least_axes, size_t most_axes,
            const char *what, Layout layout = kBhsd);
  // q, k or v; packed ones have no batch axis.
  void bind_sequences(const char *name, flydsl_aot_tensor *tensor, bool packed, Layout layout);
  // The numbers of an input that is given; else none.
  std::vector<int64_t> numbers(const char *name) const;

 private:
  const HostArrays &inputs_;
  Problem *problem_;
};

// out is of q's type, or of --set out_dtype, or bf16.
flydsl_aot_dtype out_dtype_of(flydsl_aot_dtype q, const Settings &settings);

// Value of a parameter, or `otherwise`; `used` hears of those that are set.
float number_of(const Settings &settings, const char *name, float otherwise,
                std::vector<std::string> &used);
int64_t integer_of(const Settings &settings, const char *name, int64_t otherwise,
                   std::vector<std::string> &used);

// The most keys that a row of the block table has room for, or fewer if max_seqlen_k says so.
int64_t paged_room(const flydsl_aot_tensor &block_table, const flydsl_aot_tensor &k,
                   int64_t max_seqlen_k);

// How many keys the rows of a sequence see under the mask, in sum.
double visible_pairs(const flydsl_aot_mask &mask, int64_t rows, int64_t keys);
// "none", "top-left", "bottom-right" if the mask is a causal one; else "other".
const char *causal_name(const flydsl_aot_mask &mask);

// causal, or left, right and anchor.
flydsl_aot_mask mask_of(const Settings &settings, std::vector<std::string> &used);

float scale_of(const Settings &settings, int64_t head_dim, std::vector<std::string> &used);

}  // namespace flydsl::tools
