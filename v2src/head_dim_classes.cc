#include "v2src/head_dim_classes.h"

#include <string>

namespace flydsl {
namespace {

const HeadDims *first_that_holds(std::span<const HeadDims> classes, int64_t head_dim_qk,
                                 int64_t head_dim_v) {
  for (const HeadDims &dims : classes) {
    if (head_dim_qk <= dims.qk && head_dim_v <= dims.v) return &dims;
  }
  return nullptr;
}

}  // namespace

const HeadDims *HeadDimClasses::of(int64_t head_dim_qk, int64_t head_dim_v) const {
  const HeadDims *dims = first_that_holds(in_archives, head_dim_qk, head_dim_v);
  return dims ? dims : first_that_holds(compiled, head_dim_qk, head_dim_v);
}

Status HeadDimClasses::check(int64_t head_dim_qk, int64_t head_dim_v, bool may_compile) const {
  const bool positive = head_dim_qk > 0 && head_dim_v > 0;
  if (positive && first_that_holds(in_archives, head_dim_qk, head_dim_v)) return {};
  const bool compilable = positive && first_that_holds(compiled, head_dim_qk, head_dim_v);
  if (compilable && may_compile) return {};
  std::string list;
  const auto add = [&](std::span<const HeadDims> classes) {
    for (const HeadDims &dims : classes)
      list += (list.empty() ? "" : ", ") + std::to_string(dims.qk) + "/" + std::to_string(dims.v);
  };
  add(in_archives);
  if (may_compile) add(compiled);
  return error(
      FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
      "head dims D = %lld, Dv = %lld; supported: from 1 up to one of the classes D/Dv %s%s",
      static_cast<long long>(head_dim_qk), static_cast<long long>(head_dim_v), list.c_str(),
      compilable ? kCouldBeCompiled : "");
}

}  // namespace flydsl
