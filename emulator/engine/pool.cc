#include "emulator/engine/pool.h"

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "emulator/engine/environment.h"

namespace flydsl::emu {
namespace {

struct Job {
  const std::function<void(uint64_t, unsigned)> *work;
  uint64_t next = 0, count = 0;
  unsigned workers = 0, limit = 0;  // workers that have joined; most that may
  unsigned active = 0;
};

class Pool {
 public:
  static Pool &instance() {
    static Pool pool;
    return pool;
  }

  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    for (std::thread &t : threads_) t.join();
  }

  void run(uint64_t count, unsigned threads, const std::function<void(uint64_t, unsigned)> &work) {
    Job job;
    job.work = &work;
    job.count = count;
    job.limit = threads;
    std::unique_lock lock(mutex_);
    while (threads_.size() + 1 < threads) threads_.emplace_back([this] { serve(); });
    jobs_.push_back(&job);
    wake_.notify_all();
    help(job, lock);
    done_.wait(lock, [&] { return job.active == 0 && job.next >= job.count; });
    jobs_.remove(&job);
  }

 private:
  // Works on `job` until its items are handed out. The lock is held on entry and exit.
  void help(Job &job, std::unique_lock<std::mutex> &lock) {
    const unsigned worker = job.workers++;
    ++job.active;
    while (job.next < job.count) {
      const uint64_t item = job.next++;
      lock.unlock();
      (*job.work)(item, worker);
      lock.lock();
    }
    if (--job.active == 0) done_.notify_all();
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job *job = nullptr;
      for (Job *j : jobs_)
        if (j->next < j->count && j->workers < j->limit) {
          job = j;
          break;
        }
      if (job) {
        help(*job, lock);
      } else if (closing_) {
        return;
      } else {
        wake_.wait(lock);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::list<Job *> jobs_;
  std::vector<std::thread> threads_;
  bool closing_ = false;
};

}  // namespace

void parallel_for(uint64_t count, unsigned threads,
                  const std::function<void(uint64_t, unsigned)> &work) {
  if (threads <= 1 || count <= 1) {
    for (uint64_t i = 0; i < count; ++i) work(i, 0);
    return;
  }
  Pool::instance().run(count, unsigned(std::min<uint64_t>(threads, count)), work);
}

bool on_own_threads(unsigned count, const std::function<void(uint64_t, unsigned)> &work) {
  std::mutex mutex;
  std::condition_variable decided;
  enum { kStarting, kGo, kGiveUp } state = kStarting;
  std::vector<std::thread> threads;
  threads.reserve(count);
  const auto body = [&](unsigned i) {
    {
      std::unique_lock lock(mutex);
      decided.wait(lock, [&] { return state != kStarting; });
      if (state == kGiveUp) return;
    }
    work(i, i);
  };
  try {
    for (unsigned i = 0; i < count; ++i) threads.emplace_back(body, i);
  } catch (const std::system_error &) {
  }
  const bool all = threads.size() == count;
  {
    std::lock_guard lock(mutex);
    state = all ? kGo : kGiveUp;
  }
  decided.notify_all();
  for (std::thread &thread : threads) thread.join();
  return all;
}

unsigned thread_count(unsigned asked) {
  constexpr long kMost = 1024;
  if (const char *text = std::getenv("FLYDSL_EMU_THREADS")) {
    char *end = nullptr;
    const long n = std::strtol(text, &end, 10);
    if (end != text && !*end && n >= 1 && n <= kMost) return unsigned(n);
    if (*text) complain_of("FLYDSL_EMU_THREADS", text, "1 to " + std::to_string(kMost));
  }
  if (asked) return asked;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return unsigned(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace flydsl::emu
