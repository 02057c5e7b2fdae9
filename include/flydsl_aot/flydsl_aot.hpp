// C++17 layer over the C ABI: ownership, tensors from sizes and strides, statuses with their
// message. Header-only; it adds no symbols and no behaviour of its own, and throws nothing
// (std::bad_alloc of its strings and vectors apart).
//
//   flydsl_aot::Library library;
//   if (auto status = flydsl_aot::Library::open({}, &library); !status)
//     return fail(status.message());
//   auto params = flydsl_aot::attention_forward_params();
//   params.q = flydsl_aot::tensor(q, FLYDSL_AOT_BF16, {batch, heads, seq_q, dim});  // contiguous
//   params.k = flydsl_aot::tensor(k, FLYDSL_AOT_BF16, {batch, heads_kv, seq_k, dim}, strides);
//   ...
//   params.mask = flydsl_aot::causal(FLYDSL_AOT_ANCHOR_TOP_LEFT);
//   if (auto status = library.attention_forward(params, stream); !status)
//     return fail(status.message());
#ifndef FLYDSL_AOT_FLYDSL_AOT_HPP
#define FLYDSL_AOT_FLYDSL_AOT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "flydsl_aot/flydsl_aot.h"

namespace flydsl_aot {

// A status code with the message that belongs to it, taken when the call failed. True means
// success.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // Of a C function's return value: must be made on the thread of the call, before its next one.
  Status(flydsl_aot_status code)
      : code_(code) {  // NOLINT: implicit by design, `Status s = flydsl_aot_...()`
    if (code != FLYDSL_AOT_OK) message_ = flydsl_aot_last_error();
  }

  bool ok() const { return code_ == FLYDSL_AOT_OK; }
  explicit operator bool() const { return ok(); }
  flydsl_aot_status code() const { return code_; }
  int family() const { return FLYDSL_AOT_STATUS_FAMILY(code_); }
  const char *name() const { return flydsl_aot_status_name(code_); }
  const std::string &message() const { return message_; }

 private:
  flydsl_aot_status code_ = FLYDSL_AOT_OK;
  std::string message_;
};

// A tensor with explicit strides, in elements. Sizes beyond FLYDSL_AOT_MAX_RANK or a different
// number of strides give a tensor of rank -1, which every call refuses.
inline flydsl_aot_tensor tensor(void *data, flydsl_aot_dtype dtype,
                                const std::vector<int64_t> &sizes,
                                const std::vector<int64_t> &strides) {
  flydsl_aot_tensor result{};
  result.data = data;
  result.dtype = dtype;
  const bool valid = sizes.size() <= FLYDSL_AOT_MAX_RANK && sizes.size() == strides.size();
  result.rank = valid ? static_cast<int32_t>(sizes.size()) : -1;
  if (!valid) return result;
  std::copy(sizes.begin(), sizes.end(), result.sizes);
  std::copy(strides.begin(), strides.end(), result.strides);
  return result;
}

// A contiguous tensor, the last axis fastest.
inline flydsl_aot_tensor tensor(void *data, flydsl_aot_dtype dtype,
                                const std::vector<int64_t> &sizes) {
  std::vector<int64_t> strides(sizes.size());
  uint64_t stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(sizes[axis]);
  }
  return tensor(data, dtype, sizes, strides);
}

// Read-only data; the operator's header says which operands it only reads.
inline flydsl_aot_tensor tensor(const void *data, flydsl_aot_dtype dtype,
                                const std::vector<int64_t> &sizes) {
  return tensor(const_cast<void *>(data), dtype, sizes);
}
inline flydsl_aot_tensor tensor(const void *data, flydsl_aot_dtype dtype,
                                const std::vector<int64_t> &sizes,
                                const std::vector<int64_t> &strides) {
  return tensor(const_cast<void *>(data), dtype, sizes, strides);
}

inline flydsl_aot_mask no_mask() {
  return {FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_ANCHOR_NONE, 0};
}
inline flydsl_aot_mask causal(flydsl_aot_anchor anchor) {
  return {FLYDSL_AOT_UNLIMITED, 0, anchor, 0};
}

// Zeroed, with struct_size set.
inline flydsl_aot_open_options open_options() {
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  return options;
}
// Zeroed, with struct_size set and no mask.
inline flydsl_aot_attention_forward_params attention_forward_params() {
  flydsl_aot_attention_forward_params params{};
  params.struct_size = sizeof params;
  params.mask = no_mask();
  return params;
}

// Zeroed, with struct_size set and no mask.
inline flydsl_aot_attention_decode_params attention_decode_params() {
  flydsl_aot_attention_decode_params params{};
  params.struct_size = sizeof params;
  params.mask = no_mask();
  return params;
}

// Zeroed, with struct_size set and no mask.
inline flydsl_aot_attention_backward_params attention_backward_params() {
  flydsl_aot_attention_backward_params params{};
  params.struct_size = sizeof params;
  params.mask = no_mask();
  return params;
}

// Zeroed, with struct_size set and alpha 1.
inline flydsl_aot_gemm_params gemm_params() {
  flydsl_aot_gemm_params params{};
  params.struct_size = sizeof params;
  params.alpha = 1;
  return params;
}

// Zeroed, with struct_size set and PyTorch's eps where none is given.
inline flydsl_aot_rms_norm_params rms_norm_params() {
  flydsl_aot_rms_norm_params params{};
  params.struct_size = sizeof params;
  params.eps = FLYDSL_AOT_NORM_DEFAULT_EPS;
  return params;
}

// Zeroed, with struct_size set and PyTorch's eps where none is given.
inline flydsl_aot_layer_norm_params layer_norm_params() {
  flydsl_aot_layer_norm_params params{};
  params.struct_size = sizeof params;
  params.eps = FLYDSL_AOT_LAYER_NORM_DEFAULT_EPS;
  return params;
}

// Zeroed, with struct_size set.
inline flydsl_aot_rms_norm_backward_params rms_norm_backward_params() {
  flydsl_aot_rms_norm_backward_params params{};
  params.struct_size = sizeof params;
  return params;
}

// Zeroed, with struct_size set.
inline flydsl_aot_layer_norm_backward_params layer_norm_backward_params() {
  flydsl_aot_layer_norm_backward_params params{};
  params.struct_size = sizeof params;
  return params;
}

// Zeroed, with struct_size set.
inline flydsl_aot_grouped_gemm_params grouped_gemm_params() {
  flydsl_aot_grouped_gemm_params params{};
  params.struct_size = sizeof params;
  return params;
}

// Zeroed, with struct_size set.
inline flydsl_aot_scaled_gemm_params scaled_gemm_params() {
  flydsl_aot_scaled_gemm_params params{};
  params.struct_size = sizeof params;
  return params;
}

// Zeroed, with struct_size set.
inline flydsl_aot_mx_quantise_params mx_quantise_params() {
  flydsl_aot_mx_quantise_params params{};
  params.struct_size = sizeof params;
  return params;
}

// Zeroed, with struct_size set: the largest along the last axis.
inline flydsl_aot_topk_params topk_params() {
  flydsl_aot_topk_params params{};
  params.struct_size = sizeof params;
  params.axis = -1;
  return params;
}

// Zeroed, with struct_size set.
inline flydsl_aot_topk_softmax_params topk_softmax_params() {
  flydsl_aot_topk_softmax_params params{};
  params.struct_size = sizeof params;
  return params;
}

struct Candidate {
  std::string kernel;
  std::string backend;
  std::string reason;
  bool taken = false;
  bool fits = false;  // can compute the problem, whether it is taken or not
  bool main = false;  // of the kernel that the query names
  std::string problem;  // what selection looked at
};

// Owns a flydsl_aot_handle; movable, closed by its destructor. Threads may share it as they may
// share the handle.
class Library {
 public:
  Library() = default;
  ~Library() { flydsl_aot_close(handle_); }
  Library(Library &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Library &operator=(Library &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  // Opens with these options; all defaults when they are value-initialised ({}) or from
  // open_options().
  static Status open(flydsl_aot_open_options options, Library *library) {
    options.struct_size = sizeof options;
    flydsl_aot_handle *handle = nullptr;
    const flydsl_aot_status code = flydsl_aot_open(&options, &handle);
    if (code != FLYDSL_AOT_OK) return code;
    *library = Library(handle);
    return {};
  }

  explicit operator bool() const { return handle_ != nullptr; }
  flydsl_aot_handle *get() const { return handle_; }

  Status info(flydsl_aot_info *info) const {
    *info = {};
    info->struct_size = sizeof *info;
    return flydsl_aot_get_info(handle_, info);
  }

  Status attention_forward(const flydsl_aot_attention_forward_params &params, void *stream) const {
    return flydsl_aot_attention_forward(handle_, &params, stream);
  }
  Status attention_forward_prefetch(const flydsl_aot_attention_forward_params &params) const {
    return flydsl_aot_attention_forward_prefetch(handle_, &params);
  }
  Status attention_forward_query(const flydsl_aot_attention_forward_params &params,
                                 flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_attention_forward_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status attention_forward_explain(const flydsl_aot_attention_forward_params &params,
                                   std::vector<Candidate> *candidates) const {
    return flydsl_aot_attention_forward_explain(handle_, &params, &Library::collect, candidates);
  }

  Status attention_backward(const flydsl_aot_attention_backward_params &params,
                            void *stream) const {
    return flydsl_aot_attention_backward(handle_, &params, stream);
  }
  Status attention_backward_prefetch(const flydsl_aot_attention_backward_params &params) const {
    return flydsl_aot_attention_backward_prefetch(handle_, &params);
  }
  // Says among other things how large the workspace must be.
  Status attention_backward_query(const flydsl_aot_attention_backward_params &params,
                                  flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_attention_backward_query(handle_, &params, result);
  }
  // Appends the candidates of every kernel of the call, best first.
  Status attention_backward_explain(const flydsl_aot_attention_backward_params &params,
                                    std::vector<Candidate> *candidates) const {
    return flydsl_aot_attention_backward_explain(handle_, &params, &Library::collect, candidates);
  }

  Status attention_decode(const flydsl_aot_attention_decode_params &params, void *stream) const {
    return flydsl_aot_attention_decode(handle_, &params, stream);
  }
  Status attention_decode_prefetch(const flydsl_aot_attention_decode_params &params) const {
    return flydsl_aot_attention_decode_prefetch(handle_, &params);
  }
  // Says among other things how large the workspace must be.
  Status attention_decode_query(const flydsl_aot_attention_decode_params &params,
                                flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_attention_decode_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status attention_decode_explain(const flydsl_aot_attention_decode_params &params,
                                  std::vector<Candidate> *candidates) const {
    return flydsl_aot_attention_decode_explain(handle_, &params, &Library::collect, candidates);
  }

  Status gemm(const flydsl_aot_gemm_params &params, void *stream) const {
    return flydsl_aot_gemm(handle_, &params, stream);
  }
  Status gemm_prefetch(const flydsl_aot_gemm_params &params) const {
    return flydsl_aot_gemm_prefetch(handle_, &params);
  }
  Status gemm_query(const flydsl_aot_gemm_params &params, flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_gemm_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status gemm_explain(const flydsl_aot_gemm_params &params,
                      std::vector<Candidate> *candidates) const {
    return flydsl_aot_gemm_explain(handle_, &params, &Library::collect, candidates);
  }

  Status rms_norm(const flydsl_aot_rms_norm_params &params, void *stream) const {
    return flydsl_aot_rms_norm(handle_, &params, stream);
  }
  Status rms_norm_prefetch(const flydsl_aot_rms_norm_params &params) const {
    return flydsl_aot_rms_norm_prefetch(handle_, &params);
  }
  Status rms_norm_query(const flydsl_aot_rms_norm_params &params,
                        flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_rms_norm_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status rms_norm_explain(const flydsl_aot_rms_norm_params &params,
                          std::vector<Candidate> *candidates) const {
    return flydsl_aot_rms_norm_explain(handle_, &params, &Library::collect, candidates);
  }

  Status layer_norm(const flydsl_aot_layer_norm_params &params, void *stream) const {
    return flydsl_aot_layer_norm(handle_, &params, stream);
  }
  Status layer_norm_prefetch(const flydsl_aot_layer_norm_params &params) const {
    return flydsl_aot_layer_norm_prefetch(handle_, &params);
  }
  Status layer_norm_query(const flydsl_aot_layer_norm_params &params,
                        flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_layer_norm_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status layer_norm_explain(const flydsl_aot_layer_norm_params &params,
                          std::vector<Candidate> *candidates) const {
    return flydsl_aot_layer_norm_explain(handle_, &params, &Library::collect, candidates);
  }

  Status rms_norm_backward(const flydsl_aot_rms_norm_backward_params &params, void *stream) const {
    return flydsl_aot_rms_norm_backward(handle_, &params, stream);
  }
  Status rms_norm_backward_prefetch(const flydsl_aot_rms_norm_backward_params &params) const {
    return flydsl_aot_rms_norm_backward_prefetch(handle_, &params);
  }
  // Says among other things how large the workspace must be.
  Status rms_norm_backward_query(const flydsl_aot_rms_norm_backward_params &params,
                                 flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_rms_norm_backward_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status rms_norm_backward_explain(const flydsl_aot_rms_norm_backward_params &params,
                                   std::vector<Candidate> *candidates) const {
    return flydsl_aot_rms_norm_backward_explain(handle_, &params, &Library::collect, candidates);
  }

  Status layer_norm_backward(const flydsl_aot_layer_norm_backward_params &params,
                             void *stream) const {
    return flydsl_aot_layer_norm_backward(handle_, &params, stream);
  }
  Status layer_norm_backward_prefetch(const flydsl_aot_layer_norm_backward_params &params) const {
    return flydsl_aot_layer_norm_backward_prefetch(handle_, &params);
  }
  // Says among other things how large the workspace must be.
  Status layer_norm_backward_query(const flydsl_aot_layer_norm_backward_params &params,
                                   flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_layer_norm_backward_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status layer_norm_backward_explain(const flydsl_aot_layer_norm_backward_params &params,
                                     std::vector<Candidate> *candidates) const {
    return flydsl_aot_layer_norm_backward_explain(handle_, &params, &Library::collect, candidates);
  }

  Status grouped_gemm(const flydsl_aot_grouped_gemm_params &params, void *stream) const {
    return flydsl_aot_grouped_gemm(handle_, &params, stream);
  }
  Status grouped_gemm_prefetch(const flydsl_aot_grouped_gemm_params &params) const {
    return flydsl_aot_grouped_gemm_prefetch(handle_, &params);
  }
  // Says among other things how large the workspace must be.
  Status grouped_gemm_query(const flydsl_aot_grouped_gemm_params &params,
                            flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_grouped_gemm_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status grouped_gemm_explain(const flydsl_aot_grouped_gemm_params &params,
                              std::vector<Candidate> *candidates) const {
    return flydsl_aot_grouped_gemm_explain(handle_, &params, &Library::collect, candidates);
  }

  Status scaled_gemm(const flydsl_aot_scaled_gemm_params &params, void *stream) const {
    return flydsl_aot_scaled_gemm(handle_, &params, stream);
  }
  Status scaled_gemm_prefetch(const flydsl_aot_scaled_gemm_params &params) const {
    return flydsl_aot_scaled_gemm_prefetch(handle_, &params);
  }
  // Says among other things how large the workspace must be.
  Status scaled_gemm_query(const flydsl_aot_scaled_gemm_params &params,
                            flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_scaled_gemm_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status scaled_gemm_explain(const flydsl_aot_scaled_gemm_params &params,
                              std::vector<Candidate> *candidates) const {
    return flydsl_aot_scaled_gemm_explain(handle_, &params, &Library::collect, candidates);
  }

  Status mx_quantise(const flydsl_aot_mx_quantise_params &params, void *stream) const {
    return flydsl_aot_mx_quantise(handle_, &params, stream);
  }
  Status mx_quantise_prefetch(const flydsl_aot_mx_quantise_params &params) const {
    return flydsl_aot_mx_quantise_prefetch(handle_, &params);
  }
  Status mx_quantise_query(const flydsl_aot_mx_quantise_params &params,
                            flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_mx_quantise_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status mx_quantise_explain(const flydsl_aot_mx_quantise_params &params,
                              std::vector<Candidate> *candidates) const {
    return flydsl_aot_mx_quantise_explain(handle_, &params, &Library::collect, candidates);
  }

  Status topk(const flydsl_aot_topk_params &params, void *stream) const {
    return flydsl_aot_topk(handle_, &params, stream);
  }
  Status topk_prefetch(const flydsl_aot_topk_params &params) const {
    return flydsl_aot_topk_prefetch(handle_, &params);
  }
  // Says among other things how large the workspace must be.
  Status topk_query(const flydsl_aot_topk_params &params, flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_topk_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status topk_explain(const flydsl_aot_topk_params &params,
                      std::vector<Candidate> *candidates) const {
    return flydsl_aot_topk_explain(handle_, &params, &Library::collect, candidates);
  }

  Status topk_softmax(const flydsl_aot_topk_softmax_params &params, void *stream) const {
    return flydsl_aot_topk_softmax(handle_, &params, stream);
  }
  Status topk_softmax_prefetch(const flydsl_aot_topk_softmax_params &params) const {
    return flydsl_aot_topk_softmax_prefetch(handle_, &params);
  }
  Status topk_softmax_query(const flydsl_aot_topk_softmax_params &params,
                            flydsl_aot_query_result *result) const {
    *result = {};
    result->struct_size = sizeof *result;
    return flydsl_aot_topk_softmax_query(handle_, &params, result);
  }
  // Appends the candidates, best first.
  Status topk_softmax_explain(const flydsl_aot_topk_softmax_params &params,
                              std::vector<Candidate> *candidates) const {
    return flydsl_aot_topk_softmax_explain(handle_, &params, &Library::collect, candidates);
  }

 private:
  explicit Library(flydsl_aot_handle *handle) : handle_(handle) {}

  static void collect(void *user, const flydsl_aot_candidate *candidate) {
    static_cast<std::vector<Candidate> *>(user)->push_back(
        {candidate->kernel, candidate->backend, candidate->reason, candidate->taken != 0, candidate->fits != 0,
         candidate->main != 0, candidate->problem});
  }

  flydsl_aot_handle *handle_ = nullptr;
};

// Device memory of a library's runtime; freed by its destructor. The library must outlive it.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer() {
    if (data_) (void)flydsl_aot_device_free(handle_, data_);
  }
  DeviceBuffer(DeviceBuffer &&other) noexcept
      : handle_(other.handle_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;

  static Status allocate(const Library &library, size_t bytes, DeviceBuffer *buffer) {
    DeviceBuffer result;
    result.handle_ = library.get();
    result.bytes_ = bytes;
    const flydsl_aot_status code = flydsl_aot_device_malloc(library.get(), bytes, &result.data_);
    if (code != FLYDSL_AOT_OK) return code;
    *buffer = std::move(result);
    return {};
  }

  void *data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // The whole buffer; `host` holds bytes().
  Status upload(const void *host) const {
    return flydsl_aot_device_upload(handle_, data_, host, bytes_);
  }
  Status download(void *host) const {
    return flydsl_aot_device_download(handle_, host, data_, bytes_);
  }

 private:
  flydsl_aot_handle *handle_ = nullptr;
  void *data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace flydsl_aot

#endif
