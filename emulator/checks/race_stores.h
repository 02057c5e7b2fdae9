// Stores to global memory that an atomic of their work-group does not release yet: those in flight, and those that the L2 of their XCD may keep for itself.
// LLVM AMDGPU User Guide, "Memory Model GFX942": a release at agent scope is buffer_wbl2 sc1, then s_waitcnt vmcnt(0), then the atomic; an acquire is the
// atomic, s_waitcnt vmcnt(0), buffer_inv sc1. Stores and loads at device scope (sc1) go past the caches, and need the waits only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_set>
#include <vector>

namespace flydsl::emu::checks {

class OpenStores {
 public:
  void begin(size_t waves) {
    in_flight_.assign(waves, {});
    kept_.clear();
  }

  // `number`: of the wave's vector memory instructions, from 1. `through`: no cache keeps it.
  template <class Covered>
  void store(uint32_t wave, uint32_t number, uint32_t id, bool through, Covered &&covered) {
    auto &stores = in_flight_[wave];
    if (!stores.empty() && stores.back().number == number) return;  // another address of the same
    constexpr size_t kMostInFlight = 63;                            // what vmcnt counts to
    if (stores.size() == kMostInFlight) land(stores, covered);
    stores.push_back({number, id, through});
  }
  // The wave has waited until at most `left` of the `issued` are in flight.
  template <class Covered>
  void waited(uint32_t wave, uint32_t issued, uint32_t left, Covered &&covered) {
    auto &stores = in_flight_[wave];
    while (!stores.empty() && issued - stores.front().number >= left) land(stores, covered);
  }
  // The L2 gives away what it keeps.
  template <class Covered>
  void written_back(Covered &&covered) {
    for (const uint32_t id : kept_) covered(id);
    kept_.clear();
    for (auto &stores : in_flight_)
      for (Store &store : stores) store.through = true;
  }

 private:
  struct Store {
    uint32_t number, id;
    bool through;
  };
  template <class Covered>
  void land(std::deque<Store> &stores, Covered &&covered) {
    const Store store = stores.front();
    stores.pop_front();
    const bool again = std::any_of(stores.begin(), stores.end(),
                                   [&](const Store &other) { return other.id == store.id; });
    if (!store.through)
      kept_.insert(store.id);
    else if (!again && !kept_.count(store.id))
      covered(store.id);
  }

  std::vector<std::deque<Store>> in_flight_;  // by wave
  std::unordered_set<uint32_t> kept_;
};

}  // namespace flydsl::emu::checks
