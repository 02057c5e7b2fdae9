// A tensor of the caller's that is made when it is asked for, and disposed of at the end of the scope: also where the call fails
// or a callback throws.
#pragma once

#include "aotriton/util.h"

namespace flydsl::aotriton {

template <int Rank>
class Lazy {
 public:
  explicit Lazy(::aotriton::LazyTensor<Rank> *tensor) : tensor_(tensor) {}
  ~Lazy() { tensor_->free(); }
  Lazy(const Lazy &) = delete;
  Lazy &operator=(const Lazy &) = delete;

  // One that an earlier call with the same parameters disposed of has no cookie any more, and is not to be asked.
  bool available() const {
    return tensor_->eager || (tensor_->acquire && (tensor_->cookie || !tensor_->dispose));
  }
  // If it need not be asked for; else null.
  const ::aotriton::TensorView<Rank> *made() const {
    return view_ ? &view_ : tensor_->eager ? &tensor_->eager : nullptr;
  }
  // Asks the caller once at most.
  const ::aotriton::TensorView<Rank> &get() {
    if (!view_) view_ = tensor_->eager ? tensor_->eager : tensor_->acquire(tensor_);
    return view_;
  }

 private:
  ::aotriton::LazyTensor<Rank> *tensor_;
  ::aotriton::TensorView<Rank> view_;
};

}  // namespace flydsl::aotriton
