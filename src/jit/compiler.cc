#include "src/jit/compiler.h"

#include <chrono>

#include "src/log/log.h"

namespace flydsl::jit {

Status Compiler::open(std::span<const unsigned char> sources, const device::Api *device,
                      archive::Archive *archive, std::unique_ptr<Compiler> *compiler) {
  std::unique_ptr<Compiler> result(new Compiler(device, *archive));
  FLYDSL_RETURN_IF_ERROR(Sources::open(sources, &result->sources_));
  archive->add(result->sources_->instances(archive->arch()));
  *compiler = std::move(result);
  return {};
}

Status Compiler::knows(std::span<const unsigned char> sources, const std::string &arch,
                       bool *known) {
  std::unique_ptr<Sources> opened;
  FLYDSL_RETURN_IF_ERROR(Sources::open(sources, &opened));
  *known = !opened->instances(arch).empty();
  return {};
}

Status Compiler::available() {
  if (!device_ || loaded_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  if (loaded_.load(std::memory_order_relaxed)) return {};
  FLYDSL_RETURN_IF_ERROR(Hiprtc::open(*device_, &hiprtc_));
  loaded_.store(true, std::memory_order_release);
  return {};
}

Status Compiler::image(uint32_t index, std::vector<unsigned char> *image) {
  FLYDSL_RETURN_IF_ERROR(available());
  std::mutex *own = nullptr;
  {
    const std::lock_guard lock(mutex_);
    own = &at_work_[index];
  }
  const std::lock_guard lock(*own);
  const archive::Entry &entry = archive_.entries()[index];
  const char *name = archive_.string(entry.name);
  const std::string arch = archive_.arch();
  const std::vector<Source> sources = sources_->of(name, arch);
  // As the archive's kernels are compiled (cmake/DeviceToolchain.cmake).
  const std::string offload = "--offload-arch=" + arch;
  const char *const options[] = {offload.c_str(), "-O3", "-std=c++20", "-fno-slp-vectorize"};
  const Key key = key_of(hiprtc_.version(), arch, options, sources);
  if (auto kept = cache_.read(key)) {
    FLYDSL_LOG(Info, "%s was compiled before: %s", name, key.text().c_str());
    *image = std::move(*kept);
    return {};
  }
  const auto begin = std::chrono::steady_clock::now();
  const Status status = hiprtc_.compile(sources, options, image);
  if (!status.ok()) return error(status.code(), "kernel '%s': %s", name, status.message().c_str());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const bool kept = cache_.write(key, *image);
  FLYDSL_LOG(Info, "compiled %s in %.2f s, %zu bytes, %s %s", name, seconds.count(), image->size(),
             kept ? "kept as" : "not kept:", key.text().c_str());
  return {};
}

}  // namespace flydsl::jit
