#include "src/module/cache.h"

#include <algorithm>
#include <optional>

#include "src/device/process.h"
#include "src/log/log.h"

namespace flydsl::module {

ModuleCache::ModuleCache(const device::Runtime &runtime, const archive::Archive &archive,
                         uint32_t most_loaded, ImageSource *others)
    : runtime_(runtime),
      archive_(archive),
      others_(others),
      most_loaded_(most_loaded),
      table_storage_(runtime.devices().size()),
      tables_(runtime.devices().size()) {}

ModuleCache::~ModuleCache() {
  if (device::forked_after_use()) return;
  for (size_t device = 0; device < table_storage_.size(); ++device) {
    if (!table_storage_[device]) continue;
    device::DeviceScope scope(runtime_);
    if (const Status status = scope.enter(static_cast<int>(device)); !status.ok()) {
      FLYDSL_LOG(Warn, "kernels of device %zu are not unloaded: %s", device,
                 status.message().c_str());
      continue;
    }
    for (size_t entry = 0; entry < archive_.entries().size(); ++entry) {
      if (const Slot &loaded = table_storage_[device][entry]; loaded.module)
        runtime_.unload_module(loaded.module);
    }
  }
}

// A device's table is made at its first use: most processes use one device of several.
ModuleCache::Slot &ModuleCache::slot(int device, uint32_t entry) {
  Slot *table = tables_[device].load(std::memory_order_acquire);
  if (!table) {
    const std::lock_guard lock(tables_mutex_);
    if (!table_storage_[device])
      table_storage_[device] = std::make_unique<Slot[]>(archive_.entries().size());
    table = table_storage_[device].get();
    tables_[device].store(table, std::memory_order_release);
  }
  return table[entry];
}

Status ModuleCache::get(int device, uint32_t entry, const KernargContract &contract,
                        device::HipStream stream, Use *use) {
  Slot &kernel = slot(device, entry);
  if (most_loaded_ != 0) FLYDSL_RETURN_IF_ERROR(hold(stream, &kernel, use));
  // After the hold, in one order for all threads: try_unload() takes the function away before it looks for holds.
  use->function_ = kernel.function.load();
  if (use->function_) return {};
  FLYDSL_RETURN_IF_ERROR(get_loaded(device, entry, contract, stream, &kernel, &use->function_));
  if (most_loaded_ != 0) unload_least_used(device, &kernel);
  return {};
}

Status ModuleCache::hold(device::HipStream stream, Slot *slot, Use *use) {
  bool capturing = false;
  FLYDSL_RETURN_IF_ERROR(runtime_.stream_capturing(stream, &capturing));
  if (capturing) {
    slot->in_graph = true;
    note_capture(stream);
  }
  slot->last_use = ++clock_;
  slot->uses.fetch_add(1);
  use->held_ = slot;
  return {};
}

void ModuleCache::note_capture(device::HipStream stream) {
  const std::lock_guard lock(captures_mutex_);
  if (std::find(captured_streams_.begin(), captured_streams_.end(), stream) ==
      captured_streams_.end())
    captured_streams_.push_back(stream);
}

// Whether a stream of earlier calls is still being captured. (HIP knows its streams: one that was destroyed since is an error.)
bool ModuleCache::amid_capture() {
  const std::lock_guard lock(captures_mutex_);
  const auto ended = [&](device::HipStream stream) {
    bool capturing = false;
    return !runtime_.stream_capturing(stream, &capturing).ok() || !capturing;
  };
  captured_streams_.erase(std::remove_if(captured_streams_.begin(), captured_streams_.end(), ended),
                          captured_streams_.end());
  return !captured_streams_.empty();
}

// A slot's module, unless a call holds it.
bool ModuleCache::try_unload(Slot *slot) const {
  const std::lock_guard lock(slot->mutex);
  const device::HipFunction function = slot->function.load();
  if (!function || slot->in_graph) return false;
  slot->function.store(nullptr);
  // Whoever holds it now saw the function or waits for the mutex. Work that was launched earlier has to end before its code goes.
  if (slot->uses.load() != 0 || !runtime_.synchronize().ok()) {
    slot->function.store(function);
    return false;
  }
  runtime_.unload_module(slot->module);
  slot->module = nullptr;
  slot->image = {};
  return true;
}

void ModuleCache::unload_least_used(int device, const Slot *loaded_now) {
  const std::lock_guard lock(unload_mutex_);
  if (amid_capture()) return;
  std::vector<std::pair<uint64_t, Slot *>> loaded;
  Slot *const table = tables_[static_cast<size_t>(device)].load(std::memory_order_acquire);
  for (size_t entry = 0; entry < archive_.entries().size(); ++entry)
    if (table[entry].function.load())
      loaded.emplace_back(table[entry].last_use.load(), &table[entry]);
  std::sort(loaded.begin(), loaded.end());
  size_t count = loaded.size();
  for (const auto &[last_use, slot] : loaded) {
    if (count <= most_loaded_) return;
    if (slot != loaded_now && try_unload(slot)) --count;
  }
}

Status ModuleCache::get_loaded(int device, uint32_t entry, const KernargContract &contract,
                               device::HipStream stream, Slot *slot,
                               device::HipFunction *function) {
  Slot &kernel = *slot;
  FLYDSL_RETURN_IF_ERROR(check_entry(device, entry, contract));
  bool capturing = false;
  FLYDSL_RETURN_IF_ERROR(runtime_.stream_capturing(stream, &capturing));
  if (capturing) return capture_error(device, entry, "its stream is being captured into a graph");

  const std::lock_guard lock(kernel.mutex);
  *function = kernel.function.load(std::memory_order_relaxed);
  if (*function) return {};
  Status status = load(entry, &kernel);
  if (status.code() == FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH)
    return capture_error(device, entry, status.message());
  if (status.ok()) *function = kernel.function.load(std::memory_order_relaxed);
  return status;
}

Status ModuleCache::check_entry(int device, uint32_t index, const KernargContract &contract) const {
  const archive::Entry &entry = archive_.entries()[index];
  const char *name = archive_.string(entry.name);
  const bool known = contract.is_of(entry) || (contract.other && contract.other->is_of(entry));
  if (!known) {
    return error(FLYDSL_AOT_ARCHIVE_MISMATCH,
                 "'%s': kernel '%s' takes arguments of layout 0x%016llx (%u bytes), this library "
                 "passes 0x%016llx (%u "
                 "bytes)",
                 archive_.path().c_str(), name,
                 static_cast<unsigned long long>(entry.kernarg_layout_id), entry.kernarg_bytes,
                 static_cast<unsigned long long>(contract.layout_id), contract.bytes);
  }
  const std::string &device_id = runtime_.devices()[device].target_id;
  const std::optional<archive::TargetId> target = archive::parse_target_id(device_id);
  std::string reason = "its target id is not understood";
  if (target && archive::compatible(archive_.target(index), *target, &reason)) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_ARCH, "kernel '%s' (%s) does not run on device %d (%s): %s",
               name, archive_.string(entry.target_id), device, device_id.c_str(), reason.c_str());
}

Status ModuleCache::load(uint32_t index, Slot *slot) const {
  const archive::Entry &entry = archive_.entries()[index];
  const char *symbol = archive_.string(entry.symbol);
  std::vector<unsigned char> image;
  FLYDSL_RETURN_IF_ERROR(archive_.in_file(index) ? archive_.read(index, &image)
                                                 : others_->image(index, &image));
  device::HipModule module = nullptr;
  FLYDSL_RETURN_IF_ERROR(runtime_.load_module(image.data(), &module));
  device::HipFunction function = nullptr;
  Status status = runtime_.get_function(module, symbol, &function);
  if (status.ok() && !function)
    status = error(FLYDSL_AOT_KERNEL_LOAD_FAILED, "hipModuleGetFunction gave no function");
  if (!status.ok()) {
    runtime_.unload_module(module);
    return error(status.code(), "kernel '%s': %s", symbol, status.message().c_str());
  }
  FLYDSL_LOG(Debug, "loaded %s, %zu bytes", archive_.string(entry.name), image.size());
  slot->image = std::move(image);
  slot->module = module;
  slot->function.store(function, std::memory_order_release);
  return {};
}

Status ModuleCache::capture_error(int device, uint32_t index, const std::string &detail) const {
  const archive::Entry &entry = archive_.entries()[index];
  return error(FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH,
               "kernel '%s' is not loaded on device %d yet and cannot be loaded now (%s): call "
               "flydsl_aot_%s_prefetch with these parameters before the capture begins",
               archive_.string(entry.name), device, detail.c_str(), archive_.string(entry.op));
}

}  // namespace flydsl::module
