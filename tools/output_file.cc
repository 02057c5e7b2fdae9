#include "tools/output_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace flydsl::tools {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};

// The temporary files that exist. A handler may run on any thread: whoever holds `held` has these
// signals blocked, so that no handler waits for the thread that it interrupted.
std::atomic_flag held = ATOMIC_FLAG_INIT;
TemporaryFile *first = nullptr;

void acquire() {
  while (held.test_and_set(std::memory_order_acquire)) {
  }
}

extern "C" void remove_temporaries_and_end(int signal_number) {
  acquire();  // for good: nothing is created or renamed any more
  for (const TemporaryFile *file = first; file; file = file->next) unlink(file->path);
  // SA_RESETHAND has restored the default: this ends the process once the handler returns, with the
  // status that its parent expects of a signal.
  raise(signal_number);
}

class Guard {
 public:
  Guard() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : kSignals) sigaddset(&signals, number);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
    acquire();
  }
  ~Guard() {
    held.clear(std::memory_order_release);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Guard(const Guard &) = delete;
  Guard &operator=(const Guard &) = delete;

 private:
  sigset_t before_;
};

void install_handlers() {
  static std::once_flag installed;
  std::call_once(installed, [] {
    for (const int number : kSignals) {
      struct sigaction action;
      // What is ignored (nohup) or handled by somebody else stays so.
      if (sigaction(number, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) ||
          action.sa_handler != SIG_DFL) {
        continue;
      }
      action = {};
      action.sa_handler = remove_temporaries_and_end;
      action.sa_flags = SA_RESETHAND | SA_RESTART;
      for (const int other : kSignals) sigaddset(&action.sa_mask, other);
      sigaction(number, &action, nullptr);
    }
  });
}

// True if it was in the list. The caller holds a Guard.
bool forget(const TemporaryFile *file) {
  for (TemporaryFile **entry = &first; *entry; entry = &(*entry)->next) {
    if (*entry != file) continue;
    *entry = file->next;
    return true;
  }
  return false;
}

[[noreturn]] void fail_errno(const char *what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

OutputFile::OutputFile(const std::string &path) : path_(path), temporary_path_(path + ".XXXXXX") {
  struct stat info;
  // Renaming over a device file such as /dev/null would replace it.
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    throw std::runtime_error("exists and is not a regular file");
  }
  install_handlers();
  {
    const Guard guard;
    file_ = mkostemp(temporary_path_.data(), O_CLOEXEC);
    if (file_ >= 0) {
      temporary_.path = temporary_path_.c_str();
      temporary_.next = std::exchange(first, &temporary_);
    }
  }
  if (file_ < 0) fail_errno("cannot be written");
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(file_, 0666 & ~mask);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
  const Guard guard;
  if (forget(&temporary_)) unlink(temporary_path_.c_str());
}

void OutputFile::write(const void *data, size_t bytes) {
  const char *bytes_left = static_cast<const char *>(data);
  while (bytes > 0) {
    const ssize_t count = ::write(file_, bytes_left, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_errno("cannot be written");
    bytes_left += count;
    bytes -= static_cast<size_t>(count);
  }
}

void OutputFile::commit() {
  if (close(std::exchange(file_, -1)) != 0) fail_errno("cannot be written");
  const Guard guard;
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) fail_errno("cannot be written");
  forget(&temporary_);
}

}  // namespace flydsl::tools
