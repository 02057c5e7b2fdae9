// Who touched each byte of memory last: the shadow that the race check keeps of LDS and of global
// memory. Sparse: pages exist once they are touched. One cell a dword, four where some access was
// narrower or misaligned.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace flydsl::emu::checks {

// One memory instruction of one wave between two barriers. Cells name it by its number in the log.
struct AccessRecord {
  uint64_t group = 0;  // linear number of the work-group
  uint32_t epoch = 0;  // barriers that the work-group had passed
  uint32_t op = 0;
  uint32_t releases =
      0;  // of the work-group before it, see race_order.h; kOpen: none covers it yet
  uint32_t wave = 0;
  static constexpr uint32_t kOpen = UINT32_MAX;
};

// Records of all host threads of a dispatch. Numbers start at 1; 0 means that the log is full and
// the access is not recorded.
class AccessLog {
 public:
  static constexpr uint32_t kChunk = 4096, kChunks = 1 << 14;

  ~AccessLog();
  const AccessRecord &operator[](uint32_t id) const {
    return chunks_[id / kChunk].load(std::memory_order_acquire)[id % kChunk];
  }

  // By the thread that wrote it.
  AccessRecord &own(uint32_t id) {
    return chunks_[id / kChunk].load(std::memory_order_acquire)[id % kChunk];
  }

  // One thread's end of the log.
  class Writer {
   public:
    explicit Writer(AccessLog &log) : log_(log) {}
    uint32_t add(const AccessRecord &record);
    // The number of the next record will not be below this one.
    uint32_t next() const { return next_; }

   private:
    AccessLog &log_;
    AccessRecord *chunk_ = nullptr;
    uint32_t next_ = 0, end_ = 0;
  };

 private:
  std::array<std::atomic<AccessRecord *>, kChunks> chunks_{};
  std::atomic<uint32_t> used_{0};
};

// Last write and last read. Flags say what one record cannot.
struct Cell {
  static constexpr uint32_t kId = (1u << 29) - 1;
  static constexpr uint32_t kAtomic = 1u << 31;    // write: by an atomic
  static constexpr uint32_t kInFlight = 1u << 30;  // write: a copy to LDS that has not landed
  static constexpr uint32_t kManyAtomics =
      1u << 29;  // write: other waves' or work-groups' atomics came before
  static constexpr uint32_t kManyWaves = 1u
                                         << 31;  // read: by other waves of the work-group as well
  static constexpr uint32_t kManyGroups = 1u << 30;  // read: by other work-groups as well
  uint32_t write = 0, read = 0;
};

struct ShadowPage {
  static constexpr uint32_t kBytes = 4096, kWords = kBytes / 4;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  std::array<Cell, kWords> words{};
  std::array<uint64_t, kWords / 64> split{};  // dwords that have a cell a byte
  std::unique_ptr<std::array<Cell, kBytes>> bytes;

  bool is_split(uint32_t word) const { return split[word / 64] >> (word % 64) & 1; }
  void split_word(uint32_t word);

  // Calls touch(cell) for each cell of [offset, offset + size), within the page.
  template <class Touch>
  void visit(uint32_t offset, uint32_t size, Touch &&touch) {
    const uint32_t end = offset + size;
    while (offset < end) {
      const uint32_t word = offset / 4;
      if (offset % 4 == 0 && end - offset >= 4 && !is_split(word)) {
        touch(words[word]);
        offset += 4;
        continue;
      }
      if (!is_split(word)) split_word(word);
      touch((*bytes)[offset++]);
    }
  }
};

// Pages of global memory, shared by the host threads.
class GlobalShadow {
 public:
  ShadowPage *page(uint64_t number);

 private:
  static constexpr size_t kShards = 64;
  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::unique_ptr<ShadowPage>> pages;
  };
  std::array<Shard, kShards> shards_;
};

}  // namespace flydsl::emu::checks
