// dlclose after real use: the library goes, no thread of it is left, and it can come back. Then
// exit with it loaded and in use.
#include <dirent.h>
#include <gtest/gtest.h>

#include "test/emulator/hip/hip_library.h"

namespace flydsl::emu::test {
namespace {

int thread_count() {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  while (const dirent *entry = readdir(tasks)) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

void use(const Hip &library) {
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  void *data = nullptr;
  ASSERT_EQ(library.hipModuleLoad(&module, object_path("gfx950_v5.co").c_str()), hipSuccess);
  ASSERT_EQ(library.hipModuleGetFunction(&function, module, "at_most_128"), hipSuccess);
  ASSERT_EQ(library.hipMalloc(&data, 64 * 64 * 4), hipSuccess);
  void *arguments[] = {&data};
  ASSERT_EQ(
      library.hipModuleLaunchKernel(function, 64, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr),
      hipSuccess);
  EXPECT_EQ(library.hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(library.hipFree(data), hipSuccess);
  EXPECT_EQ(library.hipModuleUnload(module), hipSuccess);
}

TEST(Unload, ThreeTimes) {
  const int threads_before = thread_count();
  for (int round = 0; round < 3; ++round) {
    Hip library;
    use(library);
    EXPECT_EQ(dlclose(library.library), 0);
    EXPECT_EQ(dlopen(library_path().c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr)
        << "still loaded after dlclose";
    EXPECT_EQ(thread_count(), threads_before) << "threads left behind";
  }
}

TEST(Unload, ExitWhileLoaded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Hip library;
        use(library);
        hipModule_t module = nullptr;
        void *data = nullptr;
        (void)library.hipModuleLoad(&module, object_path("gfx950_v5.co").c_str());
        (void)library.hipMalloc(&data, 1000);
        std::exit(7);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace flydsl::emu::test
