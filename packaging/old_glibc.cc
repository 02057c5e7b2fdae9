// For packages: linked into what is built with a newer glibc, so that 2.28 will do (FLYDSL_AOT_OLD_GLIBC). The linker takes the
// newest version of each function. Those that the C++ runtime, LLVM and this project use and whose newest version is too
// young stand here, hidden: under the same name the older version, or the function itself where there is none.
// The tests in test/packaging/ fail where another such function comes in.
#include <link.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdint>

#if !defined(__x86_64__) || !defined(__GLIBC__)
#error "versions are those of glibc on x86-64; configure with -DFLYDSL_AOT_OLD_GLIBC=OFF"
#endif

// `name` of this file: a jump to the version of libc's.
#define FLYDSL_OLD(name, version)                           \
  __asm__(".symver flydsl_old_" #name "," #name "@" version \
          "\n"                                              \
          ".pushsection .text\n"                            \
          ".globl " #name                                   \
          "\n"                                              \
          ".hidden " #name                                  \
          "\n"                                              \
          ".type " #name ",@function\n" #name               \
          ":\n"                                             \
          "  endbr64\n"                                     \
          "  jmp *flydsl_old_" #name                        \
          "@GOTPCREL(%rip)\n"                               \
          ".size " #name ",.-" #name                        \
          "\n"                                              \
          ".popsection\n")

// 2.34 made one library of libc, libpthread and libdl.
FLYDSL_OLD(dladdr, "GLIBC_2.2.5");
FLYDSL_OLD(dlclose, "GLIBC_2.2.5");
FLYDSL_OLD(dlerror, "GLIBC_2.2.5");
FLYDSL_OLD(dlinfo, "GLIBC_2.3.3");
FLYDSL_OLD(dlopen, "GLIBC_2.2.5");
FLYDSL_OLD(dlsym, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_create, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_detach, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_getspecific, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_join, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_key_create, "GLIBC_2.2.5");
FLYDSL_OLD(__pthread_key_create, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_key_delete, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_once, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_rwlock_rdlock, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_rwlock_unlock, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_rwlock_wrlock, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_setspecific, "GLIBC_2.2.5");
FLYDSL_OLD(pthread_sigmask, "GLIBC_2.2.5");
// Other ways to tell of errors, the same numbers.
FLYDSL_OLD(exp, "GLIBC_2.2.5");
FLYDSL_OLD(exp2, "GLIBC_2.2.5");
FLYDSL_OLD(exp2f, "GLIBC_2.2.5");
FLYDSL_OLD(hypot, "GLIBC_2.2.5");
FLYDSL_OLD(log, "GLIBC_2.2.5");
FLYDSL_OLD(pow, "GLIBC_2.2.5");

#define FLYDSL_OWN extern "C" __attribute__((visibility("hidden")))

// The names of 2.33 and before.
extern "C" int __xstat(int version, const char *path, struct stat *to);
extern "C" int __lxstat(int version, const char *path, struct stat *to);
extern "C" int __fxstat(int version, int file, struct stat *to);
constexpr int kStatVersion = 1;  // of x86-64
FLYDSL_OWN int stat(const char *path, struct stat *to) {
  return __xstat(kStatVersion, path, to);
}
FLYDSL_OWN int lstat(const char *path, struct stat *to) {
  return __lxstat(kStatVersion, path, to);
}
FLYDSL_OWN int fstat(int file, struct stat *to) {
  return __fxstat(kStatVersion, file, to);
}
FLYDSL_OWN int fstat64(int file, struct stat64 *to) {
  static_assert(sizeof(struct stat) == sizeof(struct stat64));
  return __fxstat(kStatVersion, file, reinterpret_cast<struct stat *>(to));
}

// What libstdc++ asks to spare atomic instructions: never.
FLYDSL_OWN char __libc_single_threaded;
char __libc_single_threaded = 0;

// LLVM's random numbers, for names of temporary files.
FLYDSL_OWN uint32_t arc4random() {
  uint32_t number = 0;
  while (getentropy(&number, sizeof number) != 0) {
  }
  return number;
}

// Until a time of CLOCK_MONOTONIC, by that of CLOCK_REALTIME that is as far away: its callers look at their clock again.
FLYDSL_OWN int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                      clockid_t clock, const struct timespec *until) {
  constexpr int64_t kSecond_ns = 1000000000;
  const auto ns = [](const struct timespec &time) {
    return time.tv_sec * kSecond_ns + time.tv_nsec;
  };
  struct timespec now, real;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &real);
  const int64_t at_ns = ns(real) + ns(*until) - ns(now);
  const struct timespec at = {at_ns / kSecond_ns, at_ns % kSecond_ns};
  return pthread_cond_timedwait(condition, mutex, &at);
}

// Where the unwinder finds a function's tables: the object that holds an address.
namespace {

struct Search {
  uintptr_t address;
  dl_find_object *found;
};

int look(struct dl_phdr_info *info, size_t, void *data) {
  const auto *search = static_cast<const Search *>(data);
  uintptr_t first = UINTPTR_MAX, end = 0;
  const void *tables = nullptr;
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &part = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) tables = reinterpret_cast<const void *>(begin);
    if (part.p_type != PT_LOAD) continue;
    first = begin < first ? begin : first;
    end = begin + part.p_memsz > end ? begin + part.p_memsz : end;
    holds = holds || search->address - begin < part.p_memsz;
  }
  if (!holds) return 0;
  if (!tables) return -1;
  *search->found = {};
  search->found->dlfo_map_start = reinterpret_cast<void *>(first);
  search->found->dlfo_map_end = reinterpret_cast<void *>(end);
  search->found->dlfo_eh_frame = const_cast<void *>(tables);
  return 1;
}

}  // namespace

FLYDSL_OWN int _dl_find_object(void *address, dl_find_object *found) {
  Search search{reinterpret_cast<uintptr_t>(address), found};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
