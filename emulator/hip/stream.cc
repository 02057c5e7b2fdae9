#include "emulator/hip/stream.h"

#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "emulator/engine/pool.h"
#include "emulator/hip/api_call.h"
#include "emulator/hip/capture.h"
#include "emulator/hip/current_device.h"

namespace flydsl::emu::hip {
namespace {

// After this long without work a stream's thread ends.
constexpr auto kIdle = std::chrono::milliseconds(500);

// Plain data: see error_api.cc.
thread_local bool t_is_worker = false;

}  // namespace

// Ends the streams' threads when the library is unloaded or the process exits. Streams that are
// used even later (by a client's own destructors) run their work on the caller's thread.
class Workers {
 public:
  static void start() { static Workers workers; }
  // False when it is too late for threads.
  static bool add(Stream *stream) {
    std::lock_guard<std::mutex> lock(mutex());
    if (closed()) return false;
    running().insert(stream);
    return true;
  }
  static void remove(Stream *stream) {
    std::lock_guard<std::mutex> lock(mutex());
    running().erase(stream);
  }

 private:
  // The engine's threads are made first, so that they outlive those that use them.
  Workers() {
    parallel_for(2, thread_count(0), [](uint64_t, unsigned) {});
  }
  ~Workers() {
    std::set<Stream *> last;
    {
      std::lock_guard<std::mutex> lock(mutex());
      closed() = true;
      last.swap(running());
    }
    for (Stream *stream : last) stream->stop_worker();
  }
  // Outside of the object: they are asked after its end, too.
  static std::mutex &mutex() {
    static auto *const m = new std::mutex;
    return *m;
  }
  static std::set<Stream *> &running() {
    static auto *const set = new std::set<Stream *>;
    return *set;
  }
  static bool &closed() {
    static bool value = false;
    return value;
  }
};

// None of these is ever destroyed, as with device_table().
std::mutex &submission_mutex() {
  static auto *const m = new std::mutex;
  return *m;
}

LaunchGate &launch_gate() {
  static auto *const gate = new LaunchGate;
  return *gate;
}

HandleTable<Stream> &streams() {
  static auto *const table = new HandleTable<Stream>;
  return *table;
}

Stream::~Stream() {
  Workers::remove(this);
  stop_worker();
}

void Stream::stop_worker() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  if (worker_.joinable()) worker_.join();
}

// mutex_ is held.
void Stream::start_worker() {
  if (serving_) return;
  if (worker_.joinable()) worker_.join();  // it ended for lack of work
  serving_ = true;
  worker_ = std::thread([this] { serve(); });
}

void Stream::serve() {
  t_is_worker = true;
  std::unique_lock<std::mutex> lock(mutex_);
  while (arrived_.wait_for(lock, kIdle, [&] { return stopping_ || !queue_.empty(); })) {
    if (queue_.empty()) break;  // stopping_
    Queued item = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    execute(item);
    lock.lock();
  }
  serving_ = false;
}

void Stream::execute(Queued &item) {
  for (const auto &earlier : item.after) earlier->wait();
  hipError_t result = hipSuccess;
  if (device_->faulted) {
    result = hipErrorLaunchFailure;
    if (item.work.dropped) item.work.dropped(result);
  } else if (item.work.run) {
    try {
      result = item.work.run();
    } catch (const std::bad_alloc &) {
      result = fail(hipErrorOutOfMemory, "out of host memory");
    } catch (...) {
      result = fail(hipErrorUnknown, "internal error");
    }
    if (result != hipSuccess) device_->set_fault(last_explanation());
  }
  // What the work holds (argument segments) goes before anyone learns that it is done.
  item.work = {};
  item.done->finish(result);
}

void Stream::collect_pending(Completions *list) const {
  if (tail_ && !tail_->done()) list->push_back(tail_);
}

// submission_mutex() is held by the callers below.
namespace {

bool joined_by_null_stream(const Stream &stream, const Stream &null_stream) {
  return stream.kind() == Stream::Kind::kBlocking && &stream.device() == &null_stream.device();
}

}  // namespace

hipError_t Stream::submit(Work work, std::shared_ptr<const Completion> *completion,
                          Completions after) {
  // Before the lock: what it makes may run work.
  Workers::start();
  auto done = std::make_shared<Completion>();
  std::unique_lock<std::mutex> order(submission_mutex());
  if (capture) return add_captured(*this, std::move(work));
  hipError_t error = refuse_implicit_dependency(*this);
  if (error == hipSuccess) error = device_status(*device_);
  if (error != hipSuccess) return error;
  if (kind_ == Kind::kNull) {
    for (const std::shared_ptr<Stream> &stream : streams().all())
      if (joined_by_null_stream(*stream, *this)) stream->collect_pending(&after);
  } else if (kind_ == Kind::kBlocking) {
    device_->null_stream->collect_pending(&after);
  }
  tail_ = done;
  if (completion != nullptr) *completion = done;
  std::unique_lock<std::mutex> lock(mutex_);
  queue_.push_back({std::move(work), std::move(after), done});
  if (Workers::add(this)) {
    start_worker();
    arrived_.notify_all();
    return hipSuccess;
  }
  order.unlock();
  Queued item = std::move(queue_.front());
  queue_.pop_front();
  lock.unlock();
  execute(item);
  return hipSuccess;
}

hipError_t Stream::run(Work work) {
  const hipError_t refused = may_wait("a synchronous call");
  if (refused != hipSuccess) return refused;
  std::shared_ptr<const Completion> completion;
  const hipError_t error = submit(std::move(work), &completion);
  if (error != hipSuccess || !completion) return error;
  completion->wait();
  return device_status(*device_);
}

Completions Stream::pending() const {
  std::lock_guard<std::mutex> order(submission_mutex());
  Completions list;
  collect_pending(&list);
  if (kind_ == Kind::kNull) {
    for (const std::shared_ptr<Stream> &stream : streams().all())
      if (joined_by_null_stream(*stream, *this)) stream->collect_pending(&list);
  }
  return list;
}

void Stream::wait_idle() const {
  for (const auto &completion : pending()) completion->wait();
}

bool Stream::idle() const {
  return pending().empty();
}

namespace {

// The hipStreamPerThread streams, by thread and device. Threads are numbered: their system ids come
// again.
struct PerThread {
  std::mutex mutex;
  std::map<std::pair<uint64_t, int>, std::shared_ptr<Stream>> streams;
  uint64_t threads = 0;
};
thread_local uint64_t t_thread_number = 0;

std::shared_ptr<Stream> per_thread_stream(Device *device) {
  static auto *const all = new PerThread;
  std::lock_guard<std::mutex> lock(all->mutex);
  if (t_thread_number == 0) t_thread_number = ++all->threads;
  std::shared_ptr<Stream> &stream = all->streams[{t_thread_number, device->ordinal}];
  if (!stream) {
    stream = std::make_shared<Stream>(device, Stream::Kind::kBlocking, hipStreamDefault, 0);
    streams().add(stream);
  }
  return stream;
}

}  // namespace

std::shared_ptr<Stream> stream_or_fail(hipStream_t handle, hipError_t *error) {
  if (reinterpret_cast<uintptr_t>(handle) <= hipStreamPerThreadValue) {
    Device *device = current_device_or_fail(error);
    if (device == nullptr) return nullptr;
    return reinterpret_cast<uintptr_t>(handle) == hipStreamPerThreadValue
               ? per_thread_stream(device)
               : device->null_stream;
  }
  std::shared_ptr<Stream> stream = streams().find(handle);
  if (!stream)
    *error = fail(hipErrorInvalidHandle, "stream %p does not exist", static_cast<void *>(handle));
  return stream;
}

hipError_t may_wait(const char *what) {
  if (!t_is_worker) return hipSuccess;
  return fail(hipErrorNotPermitted, "%s in a host callback would wait for the callback itself",
              what);
}

hipError_t wait_for_device(const Device &device) {
  const hipError_t refused = may_wait("waiting for the device");
  if (refused != hipSuccess) return refused;
  device.null_stream->wait_idle();
  for (const std::shared_ptr<Stream> &stream : streams().all()) {
    if (&stream->device() == &device) stream->wait_idle();
  }
  return hipSuccess;
}

}  // namespace flydsl::emu::hip
