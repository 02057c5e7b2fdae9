// Classes of head dims that attention operators have kernels for.
#pragma once

#include <cstdint>
#include <span>

#include "src/status/status.h"

namespace flydsl {

// Problems of at most these head dims, padded inside the kernel.
struct HeadDims {
  int64_t qk, v;
};

// Best first: the first that holds a problem serves it.
struct HeadDimClasses {
  std::span<const HeadDims> in_archives;
  std::span<const HeadDims> compiled;  // further ones, whose kernels are compiled at run time

  // Null if none holds them.
  const HeadDims *of(int64_t head_dim_qk, int64_t head_dim_v) const;
  // UNSUPPORTED_HEAD_DIM where no class has kernels. `may_compile`: whether kernels may be compiled.
  Status check(int64_t head_dim_qk, int64_t head_dim_v, bool may_compile) const;
};

// Ends a message that refuses what could be computed by kernels compiled at run time.
constexpr const char *kCouldBeCompiled =
    "; kernels can be compiled where FLYDSL_AOT_JIT=on allows it";

}  // namespace flydsl
