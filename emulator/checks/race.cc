// Races: two accesses to a byte, one of them a write that is not an atomic, by two waves of a
// work-group with no barrier in between, or by two work-groups that no atomic orders
// (race_order.h).
//
// - Atomics do not race with each other. Loads and stores at device scope (sc1; glc on gfx90a) of up to
//   8 bytes count as atomics: that is how compilers emit atomic loads and stores. Wider ones are data.
// - A copy to LDS writes from its issue until its wave passes the s_waitcnt that covers it,
//   whatever barriers lie between.
// - An LDS write or atomic that its wave has not waited for when it passes a barrier counts behind
//   the barrier as well. A read does not: production kernels let reads cross the barrier and rely
//   on LDS being faster than the copies that overwrite it.
// - Writes of equal values do not race with each other: waves that hold copies of one result
//   commonly all store it (Triton's layouts do), and the outcome is the same in any order.
// - Waves that synchronise through LDS or memory instead of s_barrier are reported.
#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_set>

#include "emulator/checks/all_checks.h"
#include "emulator/checks/check.h"
#include "emulator/checks/race_order.h"
#include "emulator/checks/race_shadow.h"
#include "emulator/checks/race_stores.h"

namespace flydsl::emu::checks {
namespace {

constexpr uint32_t kPage = ShadowPage::kBytes;
constexpr uint32_t kMostWaves = 16;

struct Shared {
  AccessLog log;
  GlobalShadow global;
  ReleaseClock clock;
  std::vector<bool> counts_as_atomic, past_caches;  // loads and stores, by operation
  std::unordered_set<uint32_t> writes_back, invalidates;
  bool one_l2 = false;  // of the device: there is nothing to write back (gfx90a)

  explicit Shared(const Context &context) {
    const Program &p = *context.kernel.program;
    for (uint32_t op = 0; op < p.ops.size(); ++op) {
      const Instruction &i = context.instructions[op];
      const char *scope = p.ops[op].architecture == Architecture::kGfx90a ? " glc" : " sc1";
      const bool scoped = i.is_vector_memory() && i.has(kLoads | kStores) &&
                          p.text_of(op).find(scope) != std::string::npos;
      constexpr uint32_t kWidestAtomic = 8;
      counts_as_atomic.push_back((scoped && i.bytes <= kWidestAtomic) ||
                                 begins_swap_loop(context, op));
      past_caches.push_back(scoped);
      if (i.family == Family::kCache && p.text_of(op).find(scope) != std::string::npos) {
        if (i.mnemonic == "buffer_wbl2") writes_back.insert(op);
        if (i.mnemonic == "buffer_inv") invalidates.insert(op);
      }
      one_l2 |= p.ops[op].architecture == Architecture::kGfx90a;
    }
  }

  // The plain load before a compare-and-swap loop on the same address: how compilers begin the
  // loop that stands for an atomic which the target lacks (LLVM AtomicExpand). A stale value only
  // makes the first swap fail.
  static bool begins_swap_loop(const Context &context, uint32_t op) {
    constexpr uint32_t kReach = 256;
    const Program &p = *context.kernel.program;
    const Instruction &load = context.instructions[op];
    if (!load.has(kLoads) || load.bytes % 4 || load.bytes > 8) return false;
    for (uint32_t n = op + 1; n < p.ops.size() && n < op + kReach; ++n) {
      const Instruction &swap = context.instructions[n];
      if (swap.family != load.family || !swap.has(kAtomic)) continue;
      if (swap.mnemonic.find("cmpswap") == swap.mnemonic.npos &&
          swap.mnemonic.find("cmpst") == swap.mnemonic.npos)
        continue;
      const int at = swap.has(kReturns) ? 1 : 0;
      const Operand &a = p.ops[op].o[1], &b = p.ops[n].o[at];
      if (a.kind == b.kind && a.index == b.index && p.ops[op].imm == p.ops[n].imm) return true;
    }
    return false;
  }
};

// Of two findings: none, one that depends on the values, one that does not.
uint32_t worse(uint32_t a, uint32_t b) {
  if (!a || !b) return a | b;
  return a & Order::kIfChanged ? b : a;
}

const char *verb(Use use) {
  return use == Use::kRead ? "reads" : use == Use::kWrite ? "writes" : "updates";
}

class RaceCheck : public Check {
 public:
  RaceCheck(const Context &context, Shared &shared)
      : context_(context),
        shared_(shared),
        writer_(shared.log),
        order_(shared.log, shared.clock),
        recent_(kRecent),
        pages_(kPages) {}

  void group_begin(const Group &group, const std::vector<Wave *> &waves) override {
    const uint32_t *grid = context_.dispatch.grid;
    group_ = (uint64_t(group.id[2]) * grid[1] + group.id[1]) * grid[0] + group.id[0];
    waves_ = &waves;
    epoch_ = 0;
    releases_ = 0;
    acquired_ = seen_ = 0;
    stores_.begin(waves.size());
    unreleased_ = false;
    doubts_.clear();
    oldest_ = writer_.next();
    for (Recent &r : recent_) r = {};
    lds_.resize((waves.front()->lds_bytes + kPage - 1) / kPage);
    pending_.assign(kMostWaves, {});
    copies_.assign(kMostWaves, {});
  }

  void before(Wave &wave, const Op &op, const Instruction &i) override {
    if (i.family == Family::kWait) waited(wave, op);
    if (i.family != Family::kCache) return;
    const uint32_t index = wave.pc - 1;
    if (shared_.writes_back.count(index)) stores_.written_back([&](uint32_t id) { cover(id); });
    if (shared_.invalidates.count(index)) seen_ = acquired_;
  }

  void access(Wave &wave, const Op &op, const Instruction &i, const Access &a) override {
    if (a.space == Space::kScratch) return;
    const uint32_t index = wave.pc - 1;
    const bool atomic = a.use == Use::kAtomic || shared_.counts_as_atomic[index];
    if (a.space == Space::kLds) {
      Access as = a;
      if (atomic) as.use = Use::kAtomic;
      touch_lds(wave, op, index, as);
      if (i.family == Family::kLds) remember(wave, index, as);
      return;
    }
    if (atomic && (i.has(kStores) || a.use == Use::kAtomic)) release();
    touch_global(wave, op, index, a, atomic ? Use::kAtomic : a.use);
    acquires_ = atomic && (i.has(kReturns) || i.has(kLoads));
  }

  void after(Wave &wave, const Op &op, const Instruction &) override {
    // Once memory has been seen: another thread may have released while the load was on its way there.
    if (acquires_) acquired_ = shared_.clock.acquire();
    acquires_ = false;
    if (doubts_.empty()) return;
    for (const Doubt &d : doubts_)
      if (std::memcmp(d.before, d.memory, std::min<size_t>(d.bytes, sizeof d.before))) {
        blame(wave, op, d);
        break;
      }
    doubts_.clear();
  }

  void copy_issued(Wave &wave, const Op &op, const Instruction &, const Copy &copy) override {
    const uint32_t index = wave.pc - 1, id = record_for(wave, index);
    if (!id) return;
    order_.set(record(wave, index), 0, oldest_);
    copies_[wave.wave_in_group].push_back(
        {copy.sequence, id, copy.lds_offset, copy.mask, copy.bytes});
    for (uint64_t rest = copy.mask; rest; rest &= rest - 1) {
      const int lane = __builtin_ctzll(rest);
      const uint64_t at = copy.lds_offset + uint64_t(lane) * lane_stride(copy.bytes);
      const uint32_t bad = visit_lds(at, copy.bytes, [&](Cell &c) {
        const uint32_t other = order_.write(c, id);
        c = {id | Cell::kInFlight, 0};
        return other;
      });
      if (bad && wave.stop != Stop::kFault && !same_copy(copy, lane, bad))
        blame(wave, op, {lane, "the copy to LDS writes", copy.bytes, "LDS offset ", at, bad});
    }
  }

  void barrier_passed(const std::vector<Wave *> &waves) override {
    ++epoch_;
    passing_barrier_ = true;
    for (Wave *wave : waves)
      for (const Pending &p : pending_[wave->wave_in_group]) {
        if (p.use == Use::kRead) continue;
        const Access again{Space::kLds, p.use, false, 0, p.bytes, p.mask, p.address};
        touch_lds(*wave, wave->ops[p.op], p.op, again);
      }
    passing_barrier_ = false;
  }

 private:
  struct Recent {
    uint64_t key = 0;
    uint32_t id = 0, epoch = 0, releases = 0;
  };
  struct Pending {  // an LDS instruction that its wave has not waited for
    uint32_t op;
    Use use;
    uint32_t bytes;
    uint64_t mask;
    uint64_t address[64];
  };
  struct InFlight {
    uint32_t sequence, id;
    uint64_t offset, mask;
    uint32_t bytes;
  };
  static constexpr uint32_t kRecent = 1024, kPages = 256;

  // Do two waves copy equal bytes, as when each copies what all need?
  bool same_copy(const Copy &mine, int lane, uint32_t other) const {
    const AccessRecord &r = shared_.log[other & Cell::kId];
    if (!context_.instructions[r.op].has(kCopiesToLds)) return false;
    const uint64_t at = mine.lds_offset + uint64_t(lane) * lane_stride(mine.bytes);
    const uint8_t *data = mine.data.data() + size_t(lane) * mine.bytes;
    for (const Copy &c : (*waves_)[r.wave]->memory->copies) {
      const uint64_t offset = at - c.lds_offset, stride = lane_stride(c.bytes);
      const uint64_t from = offset / stride, start = from * c.bytes + offset % stride;
      const bool whole = stride == c.bytes || offset % stride + mine.bytes <= c.bytes;
      if (at >= c.lds_offset && whole && start + mine.bytes <= 64 * uint64_t(c.bytes) &&
          c.mask >> from & 1)
        return !std::memcmp(c.data.data() + start, data, mine.bytes);
    }
    return !std::memcmp((*waves_)[r.wave]->lds + at, data, mine.bytes);  // it has landed
  }

  struct Doubt {  // a race, or two writes of one value
    int lane;
    const char *does;
    uint32_t bytes;
    const char *place;
    uint64_t at;
    uint32_t other;
    const void *memory = nullptr;
    uint8_t before[16] = {};
  };
  struct PageLock {
    ShadowPage *page = nullptr;
    ~PageLock() { release(); }
    void release() {
      if (page) page->busy.clear(std::memory_order_release);
    }
    void take(ShadowPage *next) {
      if (next == page) return;
      release();
      page = next;
      while (page->busy.test_and_set(std::memory_order_acquire)) {
      }
    }
  };

  // Reports, or leaves it to after() to see whether the value changes. False: reported.
  bool settle(Wave &wave, const Op &op, Doubt doubt, const void *memory) {
    if (!(doubt.other & Order::kIfChanged)) return blame(wave, op, doubt), false;
    if (passing_barrier_) return true;  // the value was judged when it was written
    doubt.memory = memory;
    std::memcpy(doubt.before, memory, std::min<size_t>(doubt.bytes, sizeof doubt.before));
    doubts_.push_back(doubt);
    return true;
  }

  AccessRecord record(const Wave &wave, uint32_t op) const {
    return {group_, epoch_, op, releases_, wave.wave_in_group};
  }
  // The number of the wave's record for this operation between these barriers.
  uint32_t record_for(const Wave &wave, uint32_t op, bool open = false, bool fresh = false) {
    const uint64_t key = uint64_t(op) * kMostWaves + wave.wave_in_group + 1;
    Recent &r = recent_[key % kRecent];
    unreleased_ = true;
    if (!fresh && r.key == key && r.epoch == epoch_ && r.releases == releases_) return r.id;
    AccessRecord made = record(wave, op);
    if (open) made.releases = AccessRecord::kOpen;
    r = {key, writer_.add(made), epoch_, releases_};
    return r.id;
  }
  // The next release is behind the store. The same instruction's next one is another.
  void cover(uint32_t id) {
    AccessRecord &own = shared_.log.own(id);
    const uint64_t key = uint64_t(own.op) * kMostWaves + own.wave + 1;
    if (Recent &r = recent_[key % kRecent]; r.id == id) r = {};
    shared_.clock.cover(own, releases_);
    unreleased_ = true;
  }

  void release() {
    if (!unreleased_) return;
    shared_.clock.release(group_);
    ++releases_;
    unreleased_ = false;
  }

  template <class Touch>
  uint32_t visit_lds(uint64_t at, uint32_t bytes, Touch &&touch) {
    uint32_t bad = 0;
    while (bytes && at < lds_.size() * uint64_t(kPage)) {
      const uint32_t offset = uint32_t(at % kPage), size = std::min(bytes, kPage - offset);
      auto &page = lds_[at / kPage];
      if (!page) page = std::make_unique<ShadowPage>();
      page->visit(offset, size, [&](Cell &c) { bad = worse(bad, touch(c)); });
      at += size;
      bytes -= size;
    }
    return bad;
  }

  uint32_t touch(Cell &cell, Use use, uint32_t id) const {
    return use == Use::kRead    ? order_.read(cell, id)
           : use == Use::kWrite ? order_.write(cell, id)
                                : order_.atomic(cell, id);
  }

  void touch_lds(Wave &wave, const Op &op, uint32_t index, const Access &a) {
    const uint32_t id = record_for(wave, index);
    if (!id) return;
    order_.set(record(wave, index), 0, oldest_);
    for (uint64_t rest = a.mask; rest; rest &= rest - 1) {
      const int lane = __builtin_ctzll(rest);
      const uint32_t bad =
          visit_lds(a.address[lane], a.bytes, [&](Cell &c) { return touch(c, a.use, id); });
      if (!bad) continue;
      const Doubt doubt{lane, verb(a.use), a.bytes, "LDS offset ", a.address[lane], bad};
      if (!settle(wave, op, doubt, wave.lds + a.address[lane])) return;
    }
  }

  ShadowPage *global_page(uint64_t number) {
    PageEntry &e = pages_[number % kPages];
    if (e.number != number || !e.page) e = {number, shared_.global.page(number)};
    return e.page;
  }

  void touch_global(Wave &wave, const Op &op, uint32_t index, const Access &a, Use use) {
    const bool open = use == Use::kWrite;
    // Waits may cover one of an instruction's stores and not the next: each past the caches has a record of its
    // own. (Others are covered together, by a write-back.)
    const uint32_t id = record_for(wave, index, open, open && shared_.past_caches[index]);
    if (!id) return;
    const bool through = shared_.past_caches[index] || shared_.one_l2;
    if (open)
      stores_.store(wave.wave_in_group, wave.vm_issued, id, through,
                    [&](uint32_t done) { cover(done); });
    // Scalar loads have a cache of their own, which compilers take for coherent within a kernel.
    const bool may_be_stale = use == Use::kRead && !through && !a.scalar;
    order_.set(record(wave, index), may_be_stale ? seen_ : acquired_, 0);
    PageLock held;
    for (uint64_t rest = a.mask; rest; rest &= rest - 1) {
      const int lane = __builtin_ctzll(rest);
      uint64_t at = a.address[lane];
      uint32_t bad = 0;
      for (uint32_t bytes = a.bytes; bytes;) {
        const uint32_t offset = uint32_t(at % kPage), size = std::min(bytes, kPage - offset);
        held.take(global_page(at / kPage));
        held.page->visit(offset, size, [&](Cell &c) { bad = worse(bad, touch(c, use, id)); });
        at += size;
        bytes -= size;
      }
      if (!bad) continue;
      const uint64_t address = a.address[lane];
      const Doubt doubt{a.scalar ? -1 : lane, verb(use), a.bytes, "", address, bad};
      if (!settle(wave, op, doubt, reinterpret_cast<const void *>(address))) return;
    }
  }

  // Reads too, since they count. LDS instructions return in order; with scalar loads outstanding too, at most n of them are
  // left.
  void remember(Wave &wave, uint32_t index, const Access &a) {
    constexpr size_t kMostOutstanding = 15;  // what lgkmcnt counts to
    auto &pending = pending_[wave.wave_in_group];
    if (pending.size() == kMostOutstanding) pending.pop_front();
    Pending p{index, a.use, a.bytes, a.mask, {}};
    std::copy(a.address, a.address + 64, p.address);
    pending.push_back(p);
  }

  // s_waitcnt, gfx9 encoding: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8 (LLVM AMDGPUBaseInfo).
  void waited(Wave &wave, const Op &op) {
    const uint32_t imm = uint32_t(op.imm), vm = (imm & 15) | (imm >> 14 & 3) << 4,
                   lgkm = imm >> 8 & 15;
    auto &pending = pending_[wave.wave_in_group];
    while (pending.size() > lgkm) pending.pop_front();
    stores_.waited(wave.wave_in_group, wave.vm_issued, vm, [&](uint32_t id) { cover(id); });
    auto &copies = copies_[wave.wave_in_group];
    while (!copies.empty() && wave.vm_issued - copies.front().sequence >= vm) {
      land(wave, copies.front());
      copies.pop_front();
    }
  }
  void land(Wave &wave, const InFlight &copy) {
    const uint32_t id = record_for(wave, shared_.log[copy.id].op);
    for (int lane = 0; lane < 64; ++lane)
      if (copy.mask >> lane & 1)
        visit_lds(copy.offset + uint64_t(lane) * copy.bytes, copy.bytes, [&](Cell &c) {
          if (c.write == (copy.id | Cell::kInFlight)) c.write = id;
          return 0u;
        });
  }

  // What is missing between an access of another work-group and one of this.
  std::string between_groups(const AccessRecord &r) const {
    if (shared_.clock.released_before(r, acquired_))
      return " with no buffer_inv sc1 between the atomic that orders the two and this";
    return " with no atomic in between that orders the two (one of its own behind s_waitcnt vmcnt, "
           "and "
           "buffer_wbl2 sc1 if it is a store without sc1)";
  }

  void blame(Wave &wave, const Op &op, const Doubt &d) {
    const AccessRecord &r = shared_.log[d.other & Cell::kId];
    const Program &p = *context_.kernel.program;
    const uint32_t *grid = context_.dispatch.grid;
    std::string who = "wave " + std::to_string(r.wave);
    if (r.group != group_)
      who += " of work-group (" + std::to_string(r.group % grid[0]) + "," +
             std::to_string(r.group / grid[0] % grid[1]) + "," +
             std::to_string(r.group / grid[0] / grid[1]) + ")";
    const bool copy = context_.instructions[r.op].has(kCopiesToLds);
    const bool others = r.group == group_ && r.wave == wave.wave_in_group;
    report("race", wave, op, d.lane,
           std::string(d.does) + " " + std::to_string(d.bytes) + " bytes at " + d.place +
               hex(d.at) + (others ? ", which others besides " : ", which ") + who + " at " +
               offset_and_line(p, r.op) + " `" + p.text_of(r.op) + "` " +
               (copy     ? "copies to"
                : others ? "access"
                         : "accesses") +
               (r.group != group_ ? between_groups(r)
                : copy            ? " with no s_waitcnt and barrier in between"
                                  : " with no barrier in between"));
  }

  struct PageEntry {
    uint64_t number = 0;
    ShadowPage *page = nullptr;
  };

  const Context context_;
  Shared &shared_;
  AccessLog::Writer writer_;
  Order order_;
  std::vector<Recent> recent_;
  std::vector<PageEntry> pages_;
  std::vector<std::unique_ptr<ShadowPage>> lds_;
  std::vector<std::deque<Pending>> pending_;
  std::vector<std::deque<InFlight>> copies_;
  OpenStores stores_;
  uint64_t group_ = 0, acquired_ = 0,
           seen_ = 0;  // seen_: what was acquired when the caches were last emptied
  uint32_t epoch_ = 0, releases_ = 0, oldest_ = 0;
  bool unreleased_ = false, passing_barrier_ = false, acquires_ = false;
  std::vector<Doubt> doubts_;
  const std::vector<Wave *> *waves_ = nullptr;
};

}  // namespace

std::shared_ptr<void> make_race_state(const Context &context) {
  return std::make_shared<Shared>(context);
}
std::unique_ptr<Check> make_race(const Context &context, void *shared) {
  return std::make_unique<RaceCheck>(context, *static_cast<Shared *>(shared));
}

}  // namespace flydsl::emu::checks
