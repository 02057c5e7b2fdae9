// Host threads that live as long as the process's first and last dispatch.
#pragma once

#include <cstdint>
#include <functional>

namespace flydsl::emu {

// Calls work(item, worker) for every item of [0, count), items handed out in increasing order,
// `worker` in [0, threads). The caller's thread works too; returns when all are done. `work` must
// not throw.
void parallel_for(uint64_t count, unsigned threads,
                  const std::function<void(uint64_t, unsigned)> &work);

// Calls work(i, i) for every i of [0, count), each on a thread made for it, all at the same time.
// False, and no call at all, when the host does not have so many threads.
bool on_own_threads(unsigned count, const std::function<void(uint64_t, unsigned)> &work);

// FLYDSL_EMU_THREADS, else `asked`, else the processors this process may use.
unsigned thread_count(unsigned asked);

}  // namespace flydsl::emu
