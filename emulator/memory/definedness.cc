#include "emulator/memory/definedness.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace flydsl::emu {
namespace {

uint8_t *const kDefined = reinterpret_cast<uint8_t *>(1);

}  // namespace

Definedness &Definedness::instance() {
  static auto *const state = new Definedness;  // never destroyed, like the address space
  return *state;
}

bool Definedness::wanted() {
  static const bool wanted = [] {
    const char *text = std::getenv("FLYDSL_EMU_CHECKS");
    std::string names(1, ',');
    if (text) names += text;
    names += ',';
    return names.find(",all,") != std::string::npos || names.find(",defined,") != std::string::npos;
  }();
  return wanted;
}

void Definedness::fresh(uint64_t begin, size_t bytes) {
  forget(begin);
  auto *pages = static_cast<Page *>(std::calloc(bytes / kPageBytes + 1, sizeof(Page)));
  if (!pages) return;  // then it counts as defined
  std::unique_lock lock(mutex_);
  allocations_[begin] = {begin + bytes, pages};
}

void Definedness::forget(uint64_t begin) {
  std::unique_lock lock(mutex_);
  const auto at = allocations_.find(begin);
  if (at == allocations_.end()) return;
  for (size_t n = 0; n <= (at->second.end - begin) / kPageBytes; ++n)
    if (at->second.pages[n] > kDefined) std::free(at->second.pages[n]);
  std::free(at->second.pages);
  allocations_.erase(at);
}

Definedness::Allocation *Definedness::find(uint64_t address, uint64_t &begin) {
  auto at = allocations_.upper_bound(address);
  if (at == allocations_.begin()) return nullptr;
  --at;
  if (address >= at->second.end) return nullptr;
  begin = at->first;
  return &at->second;
}

// The masks of a page that is about to hold both kinds; several threads may ask at once.
Definedness::Page Definedness::writable_page(Page &page) {
  Page seen = __atomic_load_n(&page, __ATOMIC_ACQUIRE);
  if (seen > kDefined) return seen;
  Page made = static_cast<Page>(std::malloc(kPageBytes));
  if (!made) return nullptr;
  std::memset(made, seen == kDefined ? 0 : 0xff, kPageBytes);
  if (__atomic_compare_exchange_n(&page, &seen, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return made;
  std::free(made);
  return writable_page(page);
}

bool Definedness::read(uint64_t address, size_t bytes, uint8_t *undefined) {
  std::memset(undefined, 0, bytes);
  std::shared_lock lock(mutex_);
  uint64_t begin = 0;
  const Allocation *a = find(address, begin);
  if (!a) return false;
  bool any = false;
  for (size_t n = 0; n < bytes;) {
    const uint64_t offset = address + n - begin;
    const size_t part = std::min(bytes - n, kPageBytes - offset % kPageBytes);
    const Page page = __atomic_load_n(&a->pages[offset / kPageBytes], __ATOMIC_ACQUIRE);
    if (page != kDefined) {
      if (page)
        std::memcpy(undefined + n, page + offset % kPageBytes, part);
      else
        std::memset(undefined + n, 0xff, part);
      for (size_t k = n; k < n + part; ++k) any |= undefined[k] != 0;
    }
    n += part;
  }
  return any;
}

void Definedness::write(uint64_t address, size_t bytes, const uint8_t *undefined) {
  std::shared_lock lock(mutex_);
  uint64_t begin = 0;
  Allocation *a = find(address, begin);
  if (!a) return;
  bytes = std::min<size_t>(bytes, a->end - address);
  for (size_t n = 0; n < bytes;) {
    const uint64_t offset = address + n - begin;
    const size_t part = std::min(bytes - n, kPageBytes - offset % kPageBytes);
    Page &page = a->pages[offset / kPageBytes];
    const Page seen = __atomic_load_n(&page, __ATOMIC_ACQUIRE);
    Page unused = nullptr;
    const bool whole = part == kPageBytes && !undefined;
    if ((seen == kDefined && !undefined) ||
        (whole && __atomic_compare_exchange_n(&page, &unused, kDefined, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE))) {
      // nothing to note
    } else if (Page masks = writable_page(page)) {
      if (undefined)
        std::memcpy(masks + offset % kPageBytes, undefined + n, part);
      else
        std::memset(masks + offset % kPageBytes, 0, part);
    }
    n += part;
  }
}

void Definedness::define(uint64_t begin, size_t bytes) {
  write(begin, bytes, nullptr);
}

void Definedness::copy(uint64_t to, uint64_t from, size_t bytes) {
  uint8_t masks[4096];
  const bool backwards = to > from;
  for (size_t done = 0; done < bytes;) {
    const size_t part = std::min(bytes - done, sizeof masks);
    const size_t at = backwards ? bytes - done - part : done;
    const bool any = read(from + at, part, masks);
    write(to + at, part, any ? masks : nullptr);
    done += part;
  }
}

}  // namespace flydsl::emu
