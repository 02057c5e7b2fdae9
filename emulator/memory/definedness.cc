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

// False: memory that is not followed.
bool Definedness::View::find(uint64_t address) {
  if (address >= begin_ && address < end_) return true;
  const auto &all = definedness_.allocations_;
  auto at = all.upper_bound(address);
  if (at == all.begin() || address >= (--at)->second.end) return false;
  begin_ = at->first;
  end_ = at->second.end;
  pages_ = at->second.pages;
  return true;
}

bool Definedness::View::defined(uint64_t offset, size_t bytes) const {
  for (uint64_t n = offset / kPageBytes; n <= (offset + bytes - 1) / kPageBytes; ++n)
    if (__atomic_load_n(&pages_[n], __ATOMIC_ACQUIRE) != kDefined) return false;
  return true;
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

bool Definedness::View::read(uint64_t address, size_t bytes, uint8_t *undefined) {
  if (!find(address)) return false;
  bytes = std::min<size_t>(bytes, end_ - address);
  if (defined(address - begin_, bytes)) return false;
  uint8_t any = 0;
  for (size_t n = 0; n < bytes;) {
    const uint64_t offset = address + n - begin_;
    const size_t part = std::min(bytes - n, kPageBytes - offset % kPageBytes);
    const Page page = __atomic_load_n(&pages_[offset / kPageBytes], __ATOMIC_ACQUIRE);
    if (page > kDefined)
      std::memcpy(undefined + n, page + offset % kPageBytes, part);
    else
      std::memset(undefined + n, page ? 0 : 0xff, part);
    for (size_t k = n; k < n + part; ++k) any |= undefined[k];
    n += part;
  }
  return any;
}

void Definedness::View::write(uint64_t address, size_t bytes, const uint8_t *undefined) {
  if (!find(address)) return;
  bytes = std::min<size_t>(bytes, end_ - address);
  if (!undefined && defined(address - begin_, bytes)) return;
  for (size_t n = 0; n < bytes;) {
    const uint64_t offset = address + n - begin_;
    const size_t part = std::min(bytes - n, kPageBytes - offset % kPageBytes);
    Page &page = pages_[offset / kPageBytes];
    Page untouched = nullptr;
    const bool whole = part == kPageBytes && !undefined;
    const bool done =
        !undefined && (__atomic_load_n(&page, __ATOMIC_ACQUIRE) == kDefined ||
                       (whole && __atomic_compare_exchange_n(&page, &untouched, kDefined, false,
                                                             __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)));
    Page masks = done ? nullptr : writable_page(page);
    if (masks && undefined) std::memcpy(masks + offset % kPageBytes, undefined + n, part);
    if (masks && !undefined) std::memset(masks + offset % kPageBytes, 0, part);
    n += part;
  }
}

void Definedness::define(uint64_t begin, size_t bytes) {
  if (bytes) View(*this).write(begin, bytes, nullptr);
}

void Definedness::copy(uint64_t to, uint64_t from, size_t bytes) {
  uint8_t masks[4096];
  const bool backwards = to > from;
  View view(*this);
  for (size_t done = 0; done < bytes;) {
    const size_t part = std::min(bytes - done, sizeof masks);
    const size_t at = backwards ? bytes - done - part : done;
    const bool any = view.read(from + at, part, masks);
    view.write(to + at, part, any ? masks : nullptr);
    done += part;
  }
}

}  // namespace flydsl::emu
