#include "emulator/checks/race_shadow.h"

namespace flydsl::emu::checks {

AccessLog::~AccessLog() {
  for (auto &chunk : chunks_) delete[] chunk.load();
}

uint32_t AccessLog::Writer::add(const AccessRecord &record) {
  if (next_ == end_) {
    const uint32_t number = log_.used_.fetch_add(1);
    if (number >= kChunks) {
      log_.used_ = kChunks;
      return 0;
    }
    chunk_ = new AccessRecord[kChunk];
    log_.chunks_[number].store(chunk_, std::memory_order_release);
    next_ = number * kChunk;
    end_ = next_ + kChunk;
    if (!next_) ++next_;
  }
  chunk_[next_ % kChunk] = record;
  return next_++;
}

void ShadowPage::split_word(uint32_t word) {
  if (!bytes) bytes = std::make_unique<std::array<Cell, kBytes>>();
  for (uint32_t b = 0; b < 4; ++b) (*bytes)[4 * word + b] = words[word];
  split[word / 64] |= uint64_t(1) << (word % 64);
}

ShadowPage *GlobalShadow::page(uint64_t number) {
  Shard &shard = shards_[(number ^ number >> 6) % kShards];
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto &page = shard.pages[number];
  if (!page) page = std::make_unique<ShadowPage>();
  return page.get();
}

}  // namespace flydsl::emu::checks
