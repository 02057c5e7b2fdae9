#include "src/device/runtime.h"

#include <cstring>

#include "src/log/log.h"

namespace flydsl::device {
namespace {

std::string read_string(const unsigned char *buffer, size_t offset) {
  const char *start = reinterpret_cast<const char *>(buffer + offset);
  return std::string(start, strnlen(start, kPropertiesStringBytes));
}

// What was refused while a kernel was loaded, but for what has a status of its own.
Status load_failure(Status status) {
  if (status.code() != FLYDSL_AOT_DEVICE_ERROR) return status;
  return {FLYDSL_AOT_KERNEL_LOAD_FAILED, status.message()};
}

}  // namespace

std::string Runtime::emulator_explanation(HipError code) const {
  if (!api_.emulator()) return {};
  const char *text = device_is_lost(code) && api_.emulator_last_fault ? api_.emulator_last_fault()
                                                                      : api_.emulator_last_error();
  return text && *text ? std::string("; ") + text : std::string();
}

Status Runtime::failure(HipError code, const char *call) const {
  const std::string explanation = emulator_explanation(code);  // before any other call
  api_.get_last_error();
  const char *name = api_.get_error_name(code);
  const char *description = api_.get_error_string(code);
  flydsl_aot_status status = FLYDSL_AOT_DEVICE_ERROR;
  if (code == kHipErrorOutOfMemory) status = FLYDSL_AOT_OUT_OF_DEVICE_MEMORY;
  if (code == kHipErrorNoDevice) status = FLYDSL_AOT_NO_DEVICE;
  if (device_is_lost(code)) status = FLYDSL_AOT_DEVICE_LOST;
  return error(status, "%s failed: HIP error %d (%s: %s)%s", call, code, name ? name : "?",
               description ? description : "?", explanation.c_str());
}

Status Runtime::open(flydsl_aot_device_kind kind, const char *option_path,
                     std::unique_ptr<Runtime> *runtime) {
  auto result = std::make_unique<Runtime>();
  FLYDSL_RETURN_IF_ERROR(load_api(kind, option_path, &result->api_));
  FLYDSL_RETURN_IF_ERROR(result->read_devices());
  *runtime = std::move(result);
  return {};
}

Status Runtime::read_devices() {
  int count = 0;
  const Status counted = check(api_.get_device_count(&count), "hipGetDeviceCount");
  if (!counted.ok() || count <= 0) {
    return error(counted.ok() ? FLYDSL_AOT_NO_DEVICE : counted.code(),
                 "'%s' has no usable device%s%s", api_.library_path.c_str(),
                 counted.ok() ? "" : ": ", counted.message().c_str());
  }
  std::vector<unsigned char> buffer(kPropertiesBufferBytes);
  for (int device = 0; device < count; ++device) {
    std::fill(buffer.begin(), buffer.end(), static_cast<unsigned char>(0));
    FLYDSL_RETURN_IF_ERROR(
        check(api_.get_device_properties(buffer.data(), device), api_.layout->symbol));
    DeviceInfo info;
    info.name = read_string(buffer.data(), api_.layout->name);
    info.target_id = read_string(buffer.data(), api_.layout->target_id);
    int32_t compute_units = 0;
    std::memcpy(&compute_units, buffer.data() + api_.layout->compute_units, sizeof compute_units);
    info.compute_units = compute_units > 0 ? static_cast<uint32_t>(compute_units) : 0;
    FLYDSL_LOG(Info, "device %d: %s, %s, %u compute units", device, info.name.c_str(),
               info.target_id.c_str(), info.compute_units);
    devices_.push_back(std::move(info));
  }
  return {};
}

Status Runtime::current_device(int *device) const {
  FLYDSL_RETURN_IF_ERROR(check(api_.get_device(device), "hipGetDevice"));
  if (*device >= 0 && static_cast<size_t>(*device) < devices_.size()) return {};
  return error(FLYDSL_AOT_DEVICE_ERROR,
               "hipGetDevice gave device %d, but there were %zu devices at open", *device,
               devices_.size());
}

Status Runtime::stream_device(HipStream stream, int *device) const {
  const bool special = reinterpret_cast<uintptr_t>(stream) <= kHipLastSpecialStream;
  if (special || !api_.stream_get_device) return current_device(device);
  FLYDSL_RETURN_IF_ERROR(check(api_.stream_get_device(stream, device), "hipStreamGetDevice"));
  if (*device >= 0 && static_cast<size_t>(*device) < devices_.size()) return {};
  return error(FLYDSL_AOT_DEVICE_ERROR,
               "hipStreamGetDevice gave device %d, but there were %zu devices at open", *device,
               devices_.size());
}

Status Runtime::stream_capturing(HipStream stream, bool *capturing) const {
  *capturing = false;
  if (!stream) return {};
  int status = kHipStreamCaptureStatusNone;
  FLYDSL_RETURN_IF_ERROR(check(api_.stream_is_capturing(stream, &status), "hipStreamIsCapturing"));
  *capturing = status != kHipStreamCaptureStatusNone;
  return {};
}

Status Runtime::load_module(const void *image, HipModule *module) const {
  const AmidCaptures amid(api_);
  const HipError code = api_.module_load_data(module, image);
  Status status = check(code, "hipModuleLoadData");
  // Another stream of this thread is being captured in a mode that forbids allocation.
  if (code >= kHipErrorStreamCaptureUnsupported && code <= kHipErrorStreamCaptureWrongThread) {
    return {FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH, status.message()};
  }
  return load_failure(std::move(status));
}

void Runtime::unload_module(HipModule module) const {
  const AmidCaptures amid(api_);
  const Status status = check(api_.module_unload(module), "hipModuleUnload");
  if (!status.ok()) FLYDSL_LOG(Warn, "%s", status.message().c_str());
}

Status Runtime::get_function(HipModule module, const char *symbol, HipFunction *function) const {
  return load_failure(
      check(api_.module_get_function(function, module, symbol), "hipModuleGetFunction"));
}

Status Runtime::malloc(size_t bytes, void **pointer) const {
  Status status = check(api_.malloc(pointer, bytes), "hipMalloc");
  if (status.ok()) return status;
  return error(status.code(), "%zu bytes: %s", bytes, status.message().c_str());
}

Status Runtime::free(void *pointer) const {
  return check(api_.free(pointer), "hipFree");
}

Status Runtime::malloc_async(size_t bytes, HipStream stream, void **pointer) const {
  if (!api_.malloc_async || !api_.free_async) {
    return error(FLYDSL_AOT_UNSUPPORTED_FEATURE, "'%s' has no hipMallocAsync and hipFreeAsync",
                 api_.library_path.c_str());
  }
  Status status = check(api_.malloc_async(pointer, bytes, stream), "hipMallocAsync");
  if (status.ok()) return status;
  return error(status.code(), "%zu bytes: %s", bytes, status.message().c_str());
}

Status Runtime::free_async(void *pointer, HipStream stream) const {
  return check(api_.free_async(pointer, stream), "hipFreeAsync");
}

Status Runtime::upload(void *device_dst, const void *host_src, size_t bytes) const {
  return check(api_.memcpy(device_dst, host_src, bytes, kHipMemcpyHostToDevice),
               "hipMemcpy (host to device)");
}

Status Runtime::download(void *host_dst, const void *device_src, size_t bytes) const {
  return check(api_.memcpy(host_dst, device_src, bytes, kHipMemcpyDeviceToHost),
               "hipMemcpy (device to host)");
}

Status Runtime::synchronize() const {
  return check(api_.device_synchronize(), "hipDeviceSynchronize");
}

AmidCaptures::AmidCaptures(const Api &api) : api_(api) {
  if (!api_.exchange_capture_mode) return;
  exchanged_ = api_.exchange_capture_mode(&mode_) == kHipSuccess;
  if (!exchanged_) api_.get_last_error();
}

AmidCaptures::~AmidCaptures() {
  if (exchanged_ && api_.exchange_capture_mode(&mode_) != kHipSuccess) api_.get_last_error();
}

Status DeviceScope::enter(int device) {
  int current = 0;
  FLYDSL_RETURN_IF_ERROR(runtime_.current_device(&current));
  if (current == device) return {};
  FLYDSL_RETURN_IF_ERROR(runtime_.check(runtime_.api().set_device(device), "hipSetDevice"));
  restore_ = current;
  return {};
}

void DeviceScope::restore() const {
  if (runtime_.api().set_device(restore_) != kHipSuccess) {
    runtime_.api().get_last_error();
    FLYDSL_LOG(Warn, "hipSetDevice(%d) failed while restoring the caller's device", restore_);
  }
}

}  // namespace flydsl::device
