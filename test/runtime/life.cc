// One life of a process that holds the library: run by life_test.py, which says how and looks at what is left.
//   life HOW LIBRARY [LIBRARY or DEVICE LIBRARY]
// The device library is hip_between unless one is given. Exit status 7: as it should be. Creating a file ends the process.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "flydsl_aot/flydsl_aot.h"
#include "test/support/hip_between.h"

// The library's own calls come here: nothing of it may make a file.
extern "C" __attribute__((visibility("default"))) int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (flags & O_CREAT) {
    std::fprintf(stderr, "%s is created\n", path);
    std::_Exit(70);
  }
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

namespace flydsl::test {
namespace {

constexpr int kRight = 7;

[[noreturn]] void fail(const char *what, const char *detail) {
  std::fprintf(stderr, "%s: %s\n", what, detail ? detail : "?");
  std::_Exit(1);
}

// The library by name, as a program that does not link it has it.
struct Library {
  explicit Library(const char *path) : loaded(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (!loaded) fail("dlopen", dlerror());
    find("flydsl_aot_open", &open);
    find("flydsl_aot_close", &close);
    find("flydsl_aot_last_error", &last_error);
    find("flydsl_aot_get_info", &get_info);
    find("flydsl_aot_gemm", &gemm);
    find("flydsl_aot_device_malloc", &malloc);
    find("flydsl_aot_device_free", &free);
    find("flydsl_aot_device_synchronize", &synchronize);
  }
  template <typename Function>
  void find(const char *name, Function *function) {
    *function = reinterpret_cast<Function>(dlsym(loaded, name));
    if (!*function) fail("dlsym", name);
  }

  // NULL: the device library that the library finds.
  flydsl_aot_handle *open_device(const char *device_library) const {
    flydsl_aot_open_options options{};
    options.struct_size = sizeof options;
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = device_library;
    flydsl_aot_handle *handle = nullptr;
    if (open(&options, &handle) != FLYDSL_AOT_OK) fail("open", last_error());
    return handle;
  }
  flydsl_aot_info info(const flydsl_aot_handle *handle) const {
    flydsl_aot_info info{};
    info.struct_size = sizeof info;
    if (get_info(handle, &info) != FLYDSL_AOT_OK) fail("get_info", last_error());
    return info;
  }

  void *loaded;
  decltype(&flydsl_aot_open) open;
  decltype(&flydsl_aot_close) close;
  decltype(&flydsl_aot_last_error) last_error;
  decltype(&flydsl_aot_get_info) get_info;
  decltype(&flydsl_aot_gemm) gemm;
  decltype(&flydsl_aot_device_malloc) malloc;
  decltype(&flydsl_aot_device_free) free;
  decltype(&flydsl_aot_device_synchronize) synchronize;
};

// A product with memory of its own.
class Work {
 public:
  explicit Work(const Library &library, const char *device_library = HIP_BETWEEN)
      : library_(library), handle_(library.open_device(device_library)) {
    params_.struct_size = sizeof params_;
    params_.alpha = 1;
    for (flydsl_aot_tensor *tensor : {&params_.a, &params_.b, &params_.d}) {
      void *data = nullptr;
      if (library.malloc(handle_, 64 * 64 * 2, &data) != FLYDSL_AOT_OK)
        fail("malloc", library.last_error());
      *tensor = {data, FLYDSL_AOT_BF16, 2, {64, 64}, {64, 1}};
    }
  }
  void launch() const {
    if (library_.gemm(handle_, &params_, nullptr) != FLYDSL_AOT_OK)
      fail("gemm", library_.last_error());
  }
  void refused() const {
    flydsl_aot_gemm_params wrong = params_;
    wrong.a.rank = 7;
    if (library_.gemm(handle_, &wrong, nullptr) == FLYDSL_AOT_OK) fail("gemm", "not refused");
  }
  flydsl_aot_info info() const { return library_.info(handle_); }
  void finish() {
    if (library_.synchronize(handle_) != FLYDSL_AOT_OK) fail("synchronize", library_.last_error());
    for (flydsl_aot_tensor *tensor : {&params_.a, &params_.b, &params_.d})
      library_.free(handle_, tensor->data);
    library_.close(handle_);
  }

 private:
  const Library &library_;
  flydsl_aot_handle *handle_;
  flydsl_aot_gemm_params params_{};
};

HipBetween &between() {
  static auto *const get = reinterpret_cast<HipBetween *(*)()>(
      dlsym(dlopen(HIP_BETWEEN, RTLD_NOW | RTLD_LOCAL), "hip_between"));
  if (!get) fail("hip_between", dlerror());
  return *get();
}
void nothing_more() {
  between().over = true;
}

const Work *at_exit = nullptr;

int reload(const char *path) {
  size_t before = 0;
  for (int turn = 0; turn < 120; ++turn) {
    if (turn == 20) before = mallinfo2().uordblks;
    const Library library(path);
    Work work(library);
    work.launch();
    work.refused();
    std::thread([&] { work.refused(); }).join();
    work.finish();
    if (dlclose(library.loaded) != 0) fail("dlclose", dlerror());
    if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) fail("dlclose", "still loaded");
  }
  const size_t after = mallinfo2().uordblks;
  // The loader and the C library keep a little of their own.
  if (after > before + 4096) fail("leak", std::to_string(after - before).c_str());
  return kRight;
}

// How a process and a thread of it handle signals.
class Signals {
 public:
  Signals() {
    for (int number = 1; number < NSIG; ++number) sigaction(number, nullptr, &actions_[number]);
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked_);
    sigaltstack(nullptr, &stack_);
  }
  void compare_with_now() const {
    const Signals now;
    for (int number = 1; number < NSIG; ++number) {
      const struct sigaction &a = actions_[number], &b = now.actions_[number];
      if (a.sa_handler != b.sa_handler || a.sa_flags != b.sa_flags ||
          std::memcmp(&a.sa_mask, &b.sa_mask, kMaskBytes) != 0)
        fail("signal", strsignal(number));
    }
    if (std::memcmp(&blocked_, &now.blocked_, kMaskBytes) != 0) fail("signals", "blocked");
    if (stack_.ss_sp != now.stack_.ss_sp || stack_.ss_flags != now.stack_.ss_flags)
      fail("signals", "have another stack");
    sigset_t pending{};
    sigpending(&pending);
    if (!sigisemptyset(&pending)) fail("signals", "are pending");
  }

 private:
  static constexpr size_t kMaskBytes = (NSIG - 1) / 8;  // what the system fills of a sigset_t
  struct sigaction actions_[NSIG] = {};
  sigset_t blocked_{};
  stack_t stack_{};
};

int signals(const char *path) {
  const Signals before;
  const Library library(path);
  Work work(library);
  work.launch();
  work.refused();
  before.compare_with_now();
  std::thread([&] {
    const Signals of_thread;
    work.launch();
    work.refused();
    of_thread.compare_with_now();
  }).join();
  work.finish();
  before.compare_with_now();
  dlclose(library.loaded);
  before.compare_with_now();
  return kRight;
}

// Messages that cannot be written, for which the system would end the process.
int unwritable_messages(const char *path) {
  int ends[2];
  if (pipe(ends) != 0) fail("pipe", strerror(errno));
  const rlimit nothing{};
  const int file = memfd_create("messages", 0);
  if (file < 0 || setrlimit(RLIMIT_FSIZE, &nothing) != 0) fail("file", strerror(errno));
  close(ends[0]);
  for (const int unwritable : {ends[1], file}) {
    dup2(unwritable, STDERR_FILENO);
    if (signals(path) != kRight) return 1;
  }
  return kRight;
}

int two_copies(const char *path, const char *other_path) {
  const Library one(path), other(other_path);
  if (one.loaded == other.loaded || one.gemm == other.gemm) fail("copies", "are one");
  Work of_one(one), of_other(other);
  of_one.launch();
  of_other.launch();
  of_one.refused();
  if (!*one.last_error() || *other.last_error()) fail("copies", "share the last error");
  const std::string archive = of_one.info().archive_path;
  if (archive == of_other.info().archive_path) fail("copies share the archive", archive.c_str());
  of_one.finish();
  dlclose(one.loaded);
  of_other.launch();
  of_other.finish();
  return kRight;
}

// A HIP runtime that something else has opened, for itself alone, is used though the loader would find another one.
int runtime_of_a_wheel(const char *path, const char *runtime) {
  if (!dlopen(runtime, RTLD_NOW | RTLD_LOCAL)) fail("dlopen", dlerror());
  const Library library(path);
  Work work(library, nullptr);
  work.launch();
  if (std::string used = work.info().device_library; used != runtime) fail("uses", used.c_str());
  std::set<std::string> loaded;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libamdhip64") != std::string::npos) loaded.insert(line.substr(line.find('/')));
  if (loaded != std::set<std::string>{runtime})
    fail("runtimes", std::to_string(loaded.size()).c_str());
  work.finish();
  return kRight;
}

int live(const std::string &how, const char *path, const char *other_path) {
  if (how == "reload") return reload(path);
  if (how == "signals") return signals(path);
  if (how == "unwritable_messages") return unwritable_messages(path);
  if (how == "two_copies") return two_copies(path, other_path);
  if (how == "runtime_of_a_wheel") return runtime_of_a_wheel(path, other_path);
  if (how == "from_root" && chdir("/") != 0) fail("chdir", path);

  static const Library library(path);
  if (how == "moved" && chdir("/") != 0) fail("chdir", path);
  static Work work(library);
  work.launch();
  if (how == "exit_in_thread") {
    std::thread([] {
      usleep(2000);
      std::exit(kRight);
    }).detach();
    for (;;) work.launch();
  }
  if (how == "closed") {
    work.finish();
    dlclose(library.loaded);
  }
  // The last handler that runs; those of libraries follow.
  std::atexit(nothing_more);
  if (how == "call_at_exit") {
    at_exit = &work;
    std::atexit([] { at_exit->launch(); });
  }
  return kRight;
}

}  // namespace
}  // namespace flydsl::test

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  return flydsl::test::live(argv[1], argv[2], argc > 3 ? argv[3] : nullptr);
}
