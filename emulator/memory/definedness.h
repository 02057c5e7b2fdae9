// Which bits of the device's global memory were never written: what hipMalloc returned and nobody
// filled. Sparse: a reservation costs nothing until it is touched. Kept only when asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace flydsl::emu {

class Definedness {
 public:
  static Definedness &instance();

  // True when FLYDSL_EMU_CHECKS asks for the check "defined", so that allocations and copies are
  // worth following from the start of the process.
  static bool wanted();

  // A fresh allocation, its end, host writes, and a copy inside device memory. Memory outside fresh
  // allocations counts as defined.
  void fresh(uint64_t begin, size_t bytes);
  void forget(uint64_t begin);
  void define(uint64_t begin, size_t bytes);
  void copy(uint64_t to, uint64_t from, size_t bytes);

  // null: all undefined; kDefined: all defined; else masks of undefined bits, one for each byte.
  using Page = uint8_t *;

  // Holds the allocations still for many look-ups.
  class View {
   public:
    explicit View(Definedness &d) : lock_(d.mutex_), definedness_(d) {}
    // Undefined bits of `bytes` bytes; false, and nothing written, when there are none.
    bool read(uint64_t address, size_t bytes, uint8_t *undefined);
    // `undefined` null: all defined.
    void write(uint64_t address, size_t bytes, const uint8_t *undefined);

   private:
    bool find(uint64_t address);
    bool defined(uint64_t offset, size_t bytes) const;
    std::shared_lock<std::shared_mutex> lock_;
    Definedness &definedness_;
    uint64_t begin_ = 0, end_ = 0;  // the allocation found last
    Page *pages_ = nullptr;
  };

 private:
  static constexpr size_t kPageBytes = 65536;
  struct Allocation {
    uint64_t end = 0;
    Page *pages = nullptr;  // zeroed by the operating system when first touched
  };
  static Page writable_page(Page &page);

  std::shared_mutex mutex_;
  std::map<uint64_t, Allocation> allocations_;
};

}  // namespace flydsl::emu
