// Compiled kernels on disk: found again, verified, evicted; and every failure of the disk costs only the caching.
#include "src/jit/disk_cache.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "test/src/archive/archive_fixture.h"

namespace flydsl::test {
namespace {

namespace fs = std::filesystem;
using jit::DiskCache;
using jit::Key;

Key key_of(uint64_t number) {
  return {0x1234, number};
}

class DiskCacheTest : public ::testing::Test {
 protected:
  std::string folder() const { return folder_.file("a/b"); }
  std::string file_of(const Key &key) const { return folder() + "/" + key.text() + ".co"; }
  DiskCache cache(uint64_t most_bytes = 1 << 20) const { return DiskCache({folder(), most_bytes}); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    if (fs::exists(folder()))
      for (const auto &item : fs::directory_iterator(folder()))
        names.push_back(item.path().filename());
    return names;
  }
  static mode_t mode_of(const std::string &path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }
  TempFolder folder_;
};

TEST_F(DiskCacheTest, FindsAgainWhatWasStored) {
  EXPECT_FALSE(cache().read(key_of(1)));
  const std::vector<unsigned char> image = fake_image(1), other = fake_image(2, 100);
  ASSERT_TRUE(cache().write(key_of(1), image));
  ASSERT_TRUE(cache().write(key_of(2), other));
  EXPECT_EQ(*cache().read(key_of(1)), image);
  EXPECT_EQ(*cache().read(key_of(2)), other);
  EXPECT_FALSE(cache().read(key_of(3)));
  EXPECT_EQ(names().size(), 2u);
  // Whoever reads or writes them may run code as this user.
  EXPECT_EQ(mode_of(folder_.file("a")), 0700u);
  EXPECT_EQ(mode_of(folder()), 0700u);
  EXPECT_EQ(mode_of(file_of(key_of(1))), 0600u);
}

TEST_F(DiskCacheTest, DamageOfAnyByteIsFoundAndTheFileGoes) {
  const std::vector<unsigned char> image = fake_image(1, 200);
  ASSERT_TRUE(cache().write(key_of(1), image));
  std::ifstream stream(file_of(key_of(1)), std::ios::binary);
  const std::vector<unsigned char> good{std::istreambuf_iterator<char>(stream), {}};
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<unsigned char> bad = good;
    bad[at] ^= 1;
    write_bytes(file_of(key_of(1)), bad);
    ASSERT_FALSE(cache().read(key_of(1))) << "byte " << at;
    ASSERT_FALSE(fs::exists(file_of(key_of(1)))) << "byte " << at;
    fs::create_directories(folder());
    // Written by the test with the umask's mode, which others might have.
    write_bytes(file_of(key_of(1)), good);
    fs::permissions(file_of(key_of(1)), fs::perms::owner_read | fs::perms::owner_write);
  }
  for (size_t bytes = 0; bytes < good.size(); bytes += 7) {
    write_bytes(file_of(key_of(1)), {good.begin(), good.begin() + static_cast<ptrdiff_t>(bytes)});
    ASSERT_FALSE(cache().read(key_of(1))) << bytes << " bytes";
  }
  std::vector<unsigned char> longer = good;
  longer.push_back(0);
  write_bytes(file_of(key_of(1)), longer);
  EXPECT_FALSE(cache().read(key_of(1)));
  // Right in itself, but of another kernel.
  write_bytes(file_of(key_of(2)), good);
  EXPECT_FALSE(cache().read(key_of(2)));
  write_bytes(file_of(key_of(1)), good);
  EXPECT_EQ(*cache().read(key_of(1)), image);
}

TEST_F(DiskCacheTest, FilesOthersCouldHaveWrittenAreNotUsed) {
  ASSERT_TRUE(cache().write(key_of(1), fake_image(1)));
  fs::permissions(file_of(key_of(1)), fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache().read(key_of(1)));
  fs::permissions(file_of(key_of(1)), fs::perms::others_write, fs::perm_options::remove);
  EXPECT_TRUE(cache().read(key_of(1)));
  // A link, a folder, a pipe of that name.
  fs::rename(file_of(key_of(1)), folder() + "/elsewhere");
  fs::create_symlink(folder() + "/elsewhere", file_of(key_of(1)));
  EXPECT_FALSE(cache().read(key_of(1)));
  fs::remove(file_of(key_of(1)));
  fs::create_directory(file_of(key_of(1)));
  EXPECT_FALSE(cache().read(key_of(1)));
  fs::remove(file_of(key_of(1)));
  ASSERT_EQ(mkfifo(file_of(key_of(1)).c_str(), 0600), 0);
  EXPECT_FALSE(cache().read(key_of(1)));
  fs::remove(file_of(key_of(1)));
  fs::rename(folder() + "/elsewhere", file_of(key_of(1)));
  EXPECT_TRUE(cache().read(key_of(1)));
  fs::permissions(folder(), fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(cache().read(key_of(1)));
  EXPECT_FALSE(cache().write(key_of(2), fake_image(2)));
}

// Which of the calls fails, the how manieth of its kind, and errno.
enum class Call { None, Open, Write, Fsync, Close, Rename };
thread_local struct {
  Call call = Call::None;
  int number = 0, error = 0;
  bool half = false;  // a write writes only half of what it is given before
} fault;

bool fails(Call call) {
  if (fault.call != call || fault.number-- != 0) return false;
  errno = fault.error;
  return true;
}

const jit::FileCalls kFaulty = {
    [](const char *path, int flags, mode_t mode) {
      return fails(Call::Open) ? -1 : jit::kFileCalls.open(path, flags, mode);
    },
    [](int fd, const void *data, size_t bytes) -> ssize_t {
      if (fails(Call::Write)) return -1;
      return jit::kFileCalls.write(fd, data, fault.half && bytes > 1 ? bytes / 2 : bytes);
    },
    [](int fd) { return fails(Call::Fsync) ? -1 : jit::kFileCalls.fsync(fd); },
    [](int fd) {
      const int closed = jit::kFileCalls.close(fd);
      return fails(Call::Close) ? -1 : closed;
    },
    [](const char *from, const char *to) {
      return fails(Call::Rename) ? -1 : jit::kFileCalls.rename(from, to);
    },
};

TEST_F(DiskCacheTest, EveryFailureOfTheDiskOnlyLosesCaching) {
  const DiskCache faulty({folder(), 1 << 20}, kFaulty);
  const std::vector<unsigned char> image = fake_image(1);
  struct Case {
    Call call;
    int number, error;
  };
  for (const Case &one :
       {Case{Call::Open, 0, EROFS}, Case{Call::Open, 0, ENOSPC}, Case{Call::Open, 0, EMFILE},
        Case{Call::Write, 0, ENOSPC}, Case{Call::Write, 3, ENOSPC}, Case{Call::Write, 1, EIO},
        Case{Call::Fsync, 0, EIO}, Case{Call::Close, 0, EDQUOT}, Case{Call::Rename, 0, EACCES}}) {
    SCOPED_TRACE(testing::Message()
                 << "call " << static_cast<int>(one.call) << " errno " << one.error);
    fault = {one.call, one.number, one.error, true};
    EXPECT_FALSE(faulty.write(key_of(1), image));
    EXPECT_FALSE(faulty.read(key_of(1)));
    EXPECT_TRUE(names().empty());  // nothing half written is left
  }
  // Interrupted, and in pieces: no failure.
  fault = {Call::Write, 2, EINTR, true};
  EXPECT_TRUE(faulty.write(key_of(1), image));
  EXPECT_EQ(*faulty.read(key_of(1)), image);
  fault = {};
}

TEST_F(DiskCacheTest, FoldersThatCannotBeMade) {
  EXPECT_FALSE(DiskCache({"", 1 << 20}).write(key_of(1), fake_image(1)));
  EXPECT_FALSE(DiskCache({"/proc/none/such", 1 << 20}).write(key_of(1), fake_image(1)));
  write_bytes(folder_.file("file"), {1});
  EXPECT_FALSE(DiskCache({folder_.file("file"), 1 << 20}).write(key_of(1), fake_image(1)));
  EXPECT_FALSE(DiskCache({folder_.file("file/below"), 1 << 20}).write(key_of(1), fake_image(1)));
  EXPECT_FALSE(DiskCache({folder_.file("file/below"), 1 << 20}).read(key_of(1)));
}

// A limit of the process's files would end it with SIGXFSZ where a write passes it.
TEST_F(DiskCacheTest, ALimitOfFileSizesRaisesNoSignal) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit = {1000, 1000};
    const bool limited = setrlimit(RLIMIT_FSIZE, &limit) == 0;
    _exit(limited && !cache().write(key_of(1), fake_image(1, 3000)) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(DiskCacheTest, TheLeastUsedGoWhenThereAreTooManyBytes) {
  const DiskCache small = cache(3500);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(small.write(key_of(i), fake_image(static_cast<unsigned>(i), 1000)));
    const timespec old[2] = {{1000 + static_cast<time_t>(i), 0},
                             {1000 + static_cast<time_t>(i), 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, file_of(key_of(i)).c_str(), old, 0), 0);
  }
  ASSERT_TRUE(small.read(key_of(0)));  // is the last used now
  ASSERT_TRUE(small.write(key_of(3), fake_image(3, 1000)));
  EXPECT_TRUE(small.read(key_of(0)));
  EXPECT_FALSE(small.read(key_of(1)));
  EXPECT_TRUE(small.read(key_of(2)));
  EXPECT_TRUE(small.read(key_of(3)));
  // Larger than all that may be kept: not stored, and nothing goes for it.
  EXPECT_FALSE(small.write(key_of(4), fake_image(4, 5000)));
  EXPECT_EQ(names().size(), 3u);
  EXPECT_FALSE(cache(0).write(key_of(5), fake_image(5)));
}

TEST_F(DiskCacheTest, WhatAnEndedProcessLeftHalfWrittenGoes) {
  ASSERT_TRUE(cache().write(key_of(1), fake_image(1)));
  const std::string stale = folder() + "/x.co.1.0.tmp", fresh = folder() + "/y.co.1.0.tmp",
                    foreign = folder() + "/notes.txt";
  for (const std::string &path : {stale, fresh, foreign}) write_bytes(path, {1, 2, 3});
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  for (const std::string &path : {stale, foreign})
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  ASSERT_TRUE(cache().write(key_of(2), fake_image(2)));
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(fresh));    // another process may be writing it
  EXPECT_TRUE(fs::exists(foreign));  // not ours
}

TEST_F(DiskCacheTest, ProcessesAndThreadsAtOnceSeeWholeFilesOnly) {
  constexpr int kProcesses = 3, kThreads = 4, kRounds = 60;
  const auto work = [&] {
    std::atomic<int> bad{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const DiskCache own = cache(20000);  // so that files go, too
        for (int i = 0; i < kRounds; ++i) {
          const auto number = static_cast<unsigned>(i + t) % 10;
          const std::vector<unsigned char> image = fake_image(number);
          if (const auto found = own.read(key_of(number)))
            bad += *found != image;
          else
            own.write(key_of(number), image);
        }
      });
    }
    for (std::thread &thread : threads) thread.join();
    return bad.load();
  };
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(work() == 0 ? 0 : 1);
    children.push_back(child);
  }
  EXPECT_EQ(work(), 0);
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  for (const std::string &name : names()) EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
}

TEST_F(DiskCacheTest, TheEnvironmentSaysWhere) {
  const ScopedEnv own("FLYDSL_AOT_JIT_CACHE_DIR", nullptr),
      limit("FLYDSL_AOT_JIT_CACHE_BYTES", nullptr), home("HOME", "/h");
  using jit::DiskCacheOptions;
  {
    const ScopedEnv xdg("XDG_CACHE_HOME", nullptr);
    EXPECT_EQ(DiskCacheOptions::from_environment().folder, "/h/.cache/flydsl_aot/jit");
    EXPECT_EQ(DiskCacheOptions::from_environment().most_bytes, jit::kDefaultCacheBytes);
  }
  {
    const ScopedEnv xdg("XDG_CACHE_HOME", "relative"), none("HOME", nullptr);
    EXPECT_EQ(DiskCacheOptions::from_environment().folder, "");
  }
  const ScopedEnv xdg("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(DiskCacheOptions::from_environment().folder, "/x/flydsl_aot/jit");
  const ScopedEnv named("FLYDSL_AOT_JIT_CACHE_DIR", "/d");
  EXPECT_EQ(DiskCacheOptions::from_environment().folder, "/d");
  for (const auto &[value, bytes] : {std::pair{"1000", 1000ull},
                                     {"-5", 0ull + jit::kDefaultCacheBytes},
                                     {"9x", 0ull + jit::kDefaultCacheBytes}}) {
    const ScopedEnv given("FLYDSL_AOT_JIT_CACHE_BYTES", value);
    EXPECT_EQ(DiskCacheOptions::from_environment().most_bytes, bytes) << value;
  }
  const ScopedEnv zero("FLYDSL_AOT_JIT_CACHE_BYTES", "0");
  EXPECT_EQ(DiskCacheOptions::from_environment().folder, "");
}

}  // namespace
}  // namespace flydsl::test
