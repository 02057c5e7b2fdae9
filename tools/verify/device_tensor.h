// A tensor in device memory with chosen strides, surrounded and interleaved by poison that must
// survive.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "flydsl_aot/flydsl_aot.h"
#include "tools/verify/random.h"

namespace flydsl::verify {

// Where the elements of a tensor lie. Default: dense, in axis order, aligned, ending with the
// allocation (so that the emulator's bounds check sees the first byte read past the end).
struct Placement {
  std::vector<int> order;  // axes from slowest to fastest; empty: 0, 1, 2, ...
  std::vector<int64_t>
      pad;  // per axis, elements added to the extent of one step of the next slower axis; empty: 0
  std::vector<bool> broadcast;  // per axis, stride 0 (inputs only); empty: none
  int64_t offset_elements = 0;  // from the start of the allocation to the first element
  int64_t slack_elements = 0;   // after the last element
  int64_t step = 1;             // from an element to the next one on the fastest axis
};

// (B, S, H, D) memory for (B, H, S, D) axes.
inline Placement bshd() {
  return Placement{{0, 2, 1, 3}, {}, {}, 0, 0};
}

// Random order of the first `free_axes` axes (the others stay fastest), pads, offset and slack. With
// `align16` every stride, and the offset, is a multiple of 16 bytes, so that the wide-load kernels take it.
Placement random_placement(Random &random, int rank, int free_axes, bool align16,
                           int64_t element_bytes = 2);

// Device memory that could not be had, written or read; the message is the library's.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class DeviceTensor {
 public:
  // Allocates, and fills everything with `poison` (a pattern of one element's size).
  DeviceTensor(flydsl_aot_handle *handle, flydsl_aot_dtype dtype, const std::vector<int64_t> &sizes,
               const Placement &placement, uint32_t poison);
  ~DeviceTensor();
  DeviceTensor(const DeviceTensor &) = delete;
  DeviceTensor &operator=(const DeviceTensor &) = delete;

  // Dense elements in axis order, element size 2 or 4; uploads. Of a broadcast axis the last index
  // wins.
  template <typename Element>
  void set(const std::vector<Element> &dense) {
    store(reinterpret_cast<const uint8_t *>(dense.data()));
  }
  // Downloads and gathers the elements in axis order.
  template <typename Element>
  std::vector<Element> get() {
    std::vector<Element> dense(static_cast<size_t>(count_));
    load(reinterpret_cast<uint8_t *>(dense.data()));
    return dense;
  }
  // Uploads again what set() did, and the poison round it.
  void upload();
  // What get() does first, alone.
  void download();
  // After download(): empty if every byte outside the elements is as it was, else where the first change
  // is.
  std::string changed_outside() const;
  // After download(): whether every byte is as it was.
  bool untouched() const { return downloaded_ == uploaded_; }

  const flydsl_aot_tensor &tensor() const { return tensor_; }

 private:
  template <typename Function>
  void for_each_run(Function function) const;
  void store(const uint8_t *dense);
  void load(uint8_t *dense);

  flydsl_aot_handle *handle_;
  flydsl_aot_tensor tensor_{};
  size_t element_bytes_;
  int64_t count_ = 1;
  int64_t offset_elements_;
  void *allocation_ = nullptr;
  std::vector<uint8_t> uploaded_;
  std::vector<uint8_t> downloaded_;
};

}  // namespace flydsl::verify
