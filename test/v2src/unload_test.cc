// libflydsl_aot.so can be loaded, used and unloaded any number of times. The program does not link
// it.
#include <dlfcn.h>

#include <thread>

#include "flydsl_aot/flydsl_aot.h"
#include "test/v2src/attention_fixture_archive.h"

namespace flydsl::test {
namespace {

void use(void *library, const std::string &archive_path) {
  const auto open = reinterpret_cast<decltype(&flydsl_aot_open)>(dlsym(library, "flydsl_aot_open"));
  const auto close =
      reinterpret_cast<decltype(&flydsl_aot_close)>(dlsym(library, "flydsl_aot_close"));
  const auto last =
      reinterpret_cast<decltype(&flydsl_aot_last_error)>(dlsym(library, "flydsl_aot_last_error"));
  ASSERT_TRUE(open && close && last);
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.device = FLYDSL_AOT_DEVICE_HIP;
  options.device_library = FAKE_HIP7;
  options.archive_path = archive_path.c_str();
  flydsl_aot_handle *handle = nullptr;
  ASSERT_EQ(open(&options, &handle), FLYDSL_AOT_OK) << last();
  close(handle);
  options.archive_path =
      "/nonexistent";  // an error, so that thread-local state and exceptions were in use
  ASSERT_EQ(open(&options, &handle), FLYDSL_AOT_ARCHIVE_NOT_FOUND);
  ASSERT_NE(last()[0], '\0');
}

TEST(Unload, AHundredTimes) {
  TempFolder folder;
  const std::string path = folder.file("a.fda");
  write_bytes(path, build_or_die(attention_spec()));
  for (int i = 0; i < 100; ++i) {
    void *library = dlopen(FLYDSL_AOT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    use(library, path);
    std::thread([&] { use(library, path); }).join();
    ASSERT_EQ(dlclose(library), 0);
    ASSERT_EQ(dlopen(FLYDSL_AOT_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr)
        << "still loaded after dlclose";
  }
}

}  // namespace
}  // namespace flydsl::test
