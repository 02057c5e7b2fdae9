#include "tools/verify/device_tensor.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace flydsl::verify {
namespace {

void require(flydsl_aot_status status, const char *what) {
  if (status != FLYDSL_AOT_OK)
    throw DeviceError(std::string(what) + ": " + flydsl_aot_last_error());
}

// `bytes` is often that of one element.
void copy_bytes(uint8_t *to, const uint8_t *from, size_t bytes) {
  switch (bytes) {
    case 1:
      *to = *from;
      break;
    case 2:
      std::memcpy(to, from, 2);
      break;
    case 4:
      std::memcpy(to, from, 4);
      break;
    default:
      std::memcpy(to, from, bytes);
  }
}

// Fills with a pattern over and over; the last one may be cut off.
void fill_with(std::vector<uint8_t> *bytes, const void *pattern, size_t pattern_bytes) {
  size_t filled = std::min(pattern_bytes, bytes->size());
  std::memcpy(bytes->data(), pattern, filled);
  while (filled < bytes->size()) {
    const size_t more = std::min(filled, bytes->size() - filled);
    std::memcpy(bytes->data() + filled, bytes->data(), more);
    filled += more;
  }
}

}  // namespace

Placement random_placement(Random &random, int rank, int free_axes, bool align16,
                           int64_t element_bytes) {
  Placement placement;
  const int64_t unit = align16 ? 16 / element_bytes : 1;
  placement.order.resize(static_cast<size_t>(rank));
  std::iota(placement.order.begin(), placement.order.end(), 0);
  for (int i = free_axes - 1; i > 0; --i) {
    std::swap(placement.order[static_cast<size_t>(i)],
              placement.order[static_cast<size_t>(random.below(i + 1))]);
  }
  for (int axis = 0; axis < rank; ++axis)
    placement.pad.push_back(random.chance(0.5) ? 0 : unit * random.between(1, 9));
  placement.offset_elements = unit * random.between(0, 40);
  placement.slack_elements = random.chance(0.5) ? 0 : random.between(1, 300);
  return placement;
}

DeviceTensor::DeviceTensor(flydsl_aot_handle *handle, flydsl_aot_dtype dtype,
                           const std::vector<int64_t> &sizes, const Placement &placement,
                           uint32_t poison)
    : handle_(handle),
      element_bytes_(flydsl_aot_dtype_bytes(dtype)),
      offset_elements_(placement.offset_elements) {
  tensor_.dtype = dtype;
  tensor_.rank = static_cast<int32_t>(sizes.size());
  int64_t extent = placement.step, last = 0;
  for (size_t i = sizes.size(); i-- > 0;) {
    const size_t axis = placement.order.empty() ? i : static_cast<size_t>(placement.order[i]);
    tensor_.sizes[axis] = sizes[axis];
    count_ *= sizes[axis];
    if (!placement.broadcast.empty() && placement.broadcast[axis]) continue;  // stride stays 0
    tensor_.strides[axis] = extent;
    last += std::max<int64_t>(0, sizes[axis] - 1) * extent;
    extent = extent * std::max<int64_t>(1, sizes[axis]) +
             (placement.pad.empty() ? 0 : placement.pad[axis]);
  }
  const int64_t elements =
      offset_elements_ + (count_ > 0 ? last + 1 : 0) + placement.slack_elements;
  uploaded_.resize(static_cast<size_t>(elements) * element_bytes_);
  if (!uploaded_.empty()) fill_with(&uploaded_, &poison, std::min(element_bytes_, sizeof poison));
  require(flydsl_aot_device_malloc(handle_, uploaded_.size(), &allocation_), "device memory");
  if (!allocation_) return;
  tensor_.data =
      static_cast<uint8_t *>(allocation_) + static_cast<size_t>(offset_elements_) * element_bytes_;
  upload();
}

DeviceTensor::~DeviceTensor() {
  flydsl_aot_device_free(handle_, allocation_);
}

// Calls function(byte offset in the allocation, first dense element, elements) for runs of elements that lie side by side, in
// axis order.
template <typename Function>
void DeviceTensor::for_each_run(Function function) const {
  int outer_axes = tensor_.rank;
  int64_t run = 1;
  while (outer_axes > 0 && tensor_.strides[outer_axes - 1] == run)
    run *= tensor_.sizes[--outer_axes];
  int64_t index[FLYDSL_AOT_MAX_RANK] = {};
  int64_t offset = offset_elements_;
  for (int64_t element = 0; element < count_; element += run) {
    function(static_cast<size_t>(offset) * element_bytes_, static_cast<size_t>(element),
             static_cast<size_t>(run));
    for (int axis = outer_axes - 1; axis >= 0; --axis) {
      offset += tensor_.strides[axis];
      if (++index[axis] < tensor_.sizes[axis]) break;
      offset -= tensor_.strides[axis] * tensor_.sizes[axis];
      index[axis] = 0;
    }
  }
}

void DeviceTensor::store(const uint8_t *dense) {
  for_each_run([&](size_t offset, size_t element, size_t count) {
    copy_bytes(&uploaded_[offset], dense + element * element_bytes_, count * element_bytes_);
  });
  upload();
}

void DeviceTensor::upload() {
  require(flydsl_aot_device_upload(handle_, allocation_, uploaded_.data(), uploaded_.size()),
          "upload");
}

void DeviceTensor::download() {
  downloaded_.assign(uploaded_.size(), 0);
  require(flydsl_aot_device_download(handle_, downloaded_.data(), allocation_, downloaded_.size()),
          "download");
}

void DeviceTensor::load(uint8_t *dense) {
  download();
  for_each_run([&](size_t offset, size_t element, size_t count) {
    copy_bytes(dense + element * element_bytes_, &downloaded_[offset], count * element_bytes_);
  });
}

std::string DeviceTensor::changed_outside() const {
  if (downloaded_ == uploaded_) return "";
  // What it is if the elements alone were changed.
  std::vector<uint8_t> allowed = uploaded_;
  for_each_run([&](size_t offset, size_t, size_t count) {
    copy_bytes(&allowed[offset], &downloaded_[offset], count * element_bytes_);
  });
  if (allowed == downloaded_) return "";
  const auto [first, other] = std::mismatch(allowed.begin(), allowed.end(), downloaded_.begin());
  return "byte " + std::to_string(first - allowed.begin()) + " of " +
         std::to_string(uploaded_.size()) + " lies outside the tensor and was changed";
}

}  // namespace flydsl::verify
