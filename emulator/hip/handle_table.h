// Live objects behind the opaque pointers that clients hold. A handle is the object's address; one
// that is not in the table is an error, not a crash, and an object in use by one thread survives
// its destruction by another.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace flydsl::emu::hip {

template <typename Object>
class HandleTable {
 public:
  const void *add(std::shared_ptr<Object> object) {
    std::lock_guard<std::mutex> lock(mutex_);
    const void *handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<Object> find(const void *handle) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  // Takes the object out; nullptr when there is none.
  std::shared_ptr<Object> remove(const void *handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  std::vector<std::shared_ptr<Object>> all() const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<Object>> objects;
    for (const auto &[handle, object] : objects_) objects.push_back(object);
    return objects;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void *, std::shared_ptr<Object>> objects_;
};

}  // namespace flydsl::emu::hip
