#include "test/support/far_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/support/library.h"

namespace flydsl::test {
namespace {

flydsl_aot_tensor dense_bf16(const std::vector<int64_t> &sizes) {
  flydsl_aot_tensor tensor{};
  tensor.dtype = FLYDSL_AOT_BF16;
  tensor.rank = 4;
  int64_t stride = 1;
  for (size_t axis = 4; axis-- > 0; stride *= sizes[axis]) {
    tensor.sizes[axis] = sizes[axis];
    tensor.strides[axis] = stride;
  }
  return tensor;
}

void allocate(flydsl_aot_tensor *tensor) {
  uint64_t bytes = 2;
  for (int axis = 0; axis < 4; ++axis)
    bytes += static_cast<uint64_t>((tensor->sizes[axis] - 1) * tensor->strides[axis]) * 2;
  EXPECT_EQ(flydsl_aot_device_malloc(emulator(), bytes, &tensor->data), FLYDSL_AOT_OK)
      << flydsl_aot_last_error();
}

}  // namespace

FarTensor::FarTensor(const std::vector<int64_t> &sizes, int far_axis) : tensor_(dense_bf16(sizes)) {
  tensor_.strides[far_axis] = (int64_t{1} << 32) / (tensor_.sizes[far_axis] - 1) / 8 * 8 + 64;
  allocate(&tensor_);
}

FarTensor::~FarTensor() {
  flydsl_aot_device_free(emulator(), tensor_.data);
}

template <typename Function>
void FarTensor::for_each_row(Function function) const {
  size_t first = 0;
  const size_t channels = static_cast<size_t>(tensor_.sizes[3]);
  for (int64_t b = 0; b < tensor_.sizes[0]; ++b) {
    for (int64_t h = 0; h < tensor_.sizes[1]; ++h) {
      for (int64_t s = 0; s < tensor_.sizes[2]; ++s, first += channels) {
        const int64_t offset =
            b * tensor_.strides[0] + h * tensor_.strides[1] + s * tensor_.strides[2];
        function(static_cast<uint16_t *>(tensor_.data) + offset, first, channels * 2);
      }
    }
  }
}

void FarTensor::set(const std::vector<uint16_t> &dense) {
  for_each_row([&](void *row, size_t first, size_t bytes) {
    ASSERT_EQ(flydsl_aot_device_upload(emulator(), row, &dense[first], bytes), FLYDSL_AOT_OK);
  });
}

std::vector<uint16_t> FarTensor::get() const {
  size_t elements = 1;
  for (int axis = 0; axis < 4; ++axis) elements *= static_cast<size_t>(tensor_.sizes[axis]);
  std::vector<uint16_t> dense(elements);
  for_each_row([&](void *row, size_t first, size_t bytes) {
    ASSERT_EQ(flydsl_aot_device_download(emulator(), &dense[first], row, bytes), FLYDSL_AOT_OK);
  });
  return dense;
}

FarPool::FarPool(int64_t pages, int64_t heads, int64_t page_size, int64_t channels)
    : tensor_(dense_bf16({pages, heads, page_size, channels})) {
  allocate(&tensor_);
}

FarPool::~FarPool() {
  flydsl_aot_device_free(emulator(), tensor_.data);
}

void FarPool::fill(int64_t first, const std::vector<uint16_t> &values) {
  const int64_t rows = tensor_.sizes[2], channels = tensor_.sizes[3];
  std::vector<uint16_t> page(static_cast<size_t>(tensor_.strides[0]));
  for (int64_t j = 0; j < static_cast<int64_t>(values.size()); ++j) {
    for (int64_t h = 0; h < tensor_.sizes[1]; ++h)
      std::fill_n(page.begin() + (h * rows + j % rows) * channels, channels,
                  values[static_cast<size_t>(j)]);
    if (j % rows != rows - 1) continue;
    ASSERT_EQ(flydsl_aot_device_upload(
                  emulator(),
                  static_cast<uint16_t *>(tensor_.data) + (first + j / rows) * tensor_.strides[0],
                  page.data(), page.size() * 2),
              FLYDSL_AOT_OK);
  }
}

}  // namespace flydsl::test
