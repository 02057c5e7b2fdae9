// Loading modules, finding kernels and variables, function attributes.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/emulator/hip/hip_library.h"

namespace flydsl::emu::test {
namespace {

std::string reason() {
  return hip().flydsl_emu_last_error();
}

TEST(Module, LoadsFromFileAndMemory) {
  const std::vector<char> image = read_object("gfx950_v5.co");
  for (int form = 0; form < 4; ++form) {
    hipModule_t module = nullptr;
    std::vector<char> bundle = read_image("bundle.hipfb");
    switch (form) {
      case 0:
        ASSERT_HIP(hipSuccess, hipModuleLoad(&module, object_path("gfx950_v5.co").c_str()));
        break;
      case 1:
        ASSERT_HIP(hipSuccess, hipModuleLoadData(&module, image.data()));
        break;
      case 2:
        ASSERT_HIP(hipSuccess, hipModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr));
        break;
      case 3:
        ASSERT_HIP(hipSuccess, hipModuleLoadData(&module, bundle.data()));
        break;
    }
    hipFunction_t function = nullptr, again = nullptr;
    EXPECT_HIP(hipSuccess, hipModuleGetFunction(&function, module, "vector_add"));
    EXPECT_HIP(hipSuccess, hipModuleGetFunction(&again, module, "vector_add"));
    EXPECT_EQ(function, again);
    EXPECT_HIP(hipErrorNotFound, hipModuleGetFunction(&again, module, "vector_sub"));
    EXPECT_NE(reason().find("vector_sub"), std::string::npos);
    EXPECT_HIP(hipSuccess, hipModuleUnload(module));
    EXPECT_HIP(hipErrorInvalidHandle, hipModuleUnload(module));
    EXPECT_HIP(hipErrorInvalidHandle, hipModuleGetFunction(&again, module, "vector_add"));
    int value = 0;
    EXPECT_HIP(hipErrorInvalidHandle,
               hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, function))
        << "its functions go with the module";
  }
}

TEST(Module, CompressedBundles) {
  const std::string corpus = FLYDSL_AOT_TEST_CORPUS "/compressed_";
  for (const char *name : {"v1_zlib", "v1_zstd", "v2_zstd", "v3_zlib", "v3_zstd"}) {
    std::ifstream file(corpus + name + ".hipfb", std::ios::binary);
    std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    hipModule_t from_file = nullptr, from_memory = nullptr;
    ASSERT_HIP(hipSuccess, hipModuleLoad(&from_file, (corpus + name + ".hipfb").c_str()))
        << reason();
    ASSERT_HIP(hipSuccess, hipModuleLoadData(&from_memory, image.data())) << reason();
    for (const hipModule_t module : {from_file, from_memory}) {
      hipFunction_t function = nullptr;
      EXPECT_HIP(hipSuccess, hipModuleGetFunction(&function, module, "k"));
      EXPECT_HIP(hipSuccess, hipModuleUnload(module));
    }
    image[4] = 9;
    EXPECT_HIP(hipErrorInvalidImage, hipModuleLoadData(&from_memory, image.data()));
    EXPECT_NE(reason().find("version 9"), std::string::npos) << reason();
  }
  hipModule_t module = nullptr;
  EXPECT_HIP(hipErrorInvalidImage, hipModuleLoad(&module, (corpus + "cut.hipfb").c_str()));
  EXPECT_NE(reason().find("truncated"), std::string::npos) << reason();
  EXPECT_HIP(hipErrorInvalidImage, hipModuleLoad(&module, (corpus + "wrong_hash.hipfb").c_str()));
  EXPECT_NE(reason().find("hash"), std::string::npos) << reason();
}

TEST(Module, RefusalsTellWhy) {
  hipModule_t module = nullptr;
  EXPECT_HIP(hipErrorFileNotFound, hipModuleLoad(&module, "/nonexistent.co"));
  EXPECT_NE(reason().find("/nonexistent.co"), std::string::npos);
  EXPECT_HIP(hipErrorNoBinaryForGpu, hipModuleLoad(&module, object_path("gfx942.co").c_str()));
  EXPECT_NE(reason().find("gfx942"), std::string::npos);
  EXPECT_HIP(hipErrorNoBinaryForGpu,
             hipModuleLoad(&module, object_path("gfx950_xnack_on.co").c_str()));
  EXPECT_NE(reason().find("xnack"), std::string::npos);
  EXPECT_HIP(hipErrorInvalidImage, hipModuleLoad(&module, "/proc/self/exe"));
  EXPECT_NE(reason().find("machine 62"), std::string::npos) << reason();
  EXPECT_HIP(
      hipErrorInvalidImage,
      hipModuleLoadData(&module, "plain text, long enough to hold an ELF header if it were one"));
  EXPECT_HIP(hipErrorFileNotFound, hipModuleLoad(&module, "/proc")) << "a directory";
  EXPECT_HIP(hipErrorInvalidValue, hipModuleLoadData(&module, nullptr));
  EXPECT_EQ(module, nullptr);
}

// hipModuleLoadData gets no size: an image whose headers reach past the mapped memory must be
// refused, not followed.
TEST(Module, ImageThatEndsAtUnmappedMemory) {
  const std::vector<char> image = read_object("gfx950_v5.co");
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char *pages = static_cast<char *>(
      mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages + 2 * page, page, PROT_NONE), 0);
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{10}, size_t{63}, size_t{64}, size_t{100}, 2 * page}) {
    char *place = pages + 2 * page - bytes;
    std::copy_n(image.begin(), bytes, place);
    hipModule_t module = nullptr;
    EXPECT_HIP(hipErrorInvalidImage, hipModuleLoadData(&module, place)) << bytes;
  }
  munmap(pages, 3 * page);
}

TEST(Module, Variables) {
  TestModule module;
  void *address = nullptr;
  size_t bytes = 0;
  ASSERT_HIP(hipSuccess, hipModuleGetGlobal(&address, &bytes, module.get(), "counter"));
  EXPECT_EQ(bytes, 4u);
  int value = 0;
  EXPECT_HIP(hipSuccess, hipMemcpyDtoH(&value, address, sizeof value));
  EXPECT_EQ(value, 41);
  ASSERT_HIP(hipSuccess, hipModuleGetGlobal(&address, &bytes, module.get(), "table"));
  const float replaced[4] = {5, 6, 7, 8};
  EXPECT_HIP(hipSuccess, hipMemcpyHtoD(address, replaced, sizeof replaced))
      << "constants are the host's to set";
  EXPECT_HIP(hipErrorNotFound, hipModuleGetGlobal(&address, &bytes, module.get(), "nothing"));
  EXPECT_HIP(hipErrorNotFound, hipModuleGetGlobal(&address, &bytes, module.get(), "vector_add"));
}

TEST(Module, FunctionAttributesAndOccupancy) {
  TestModule module;
  const hipFunction_t reverse = module.function("reverse_static"),
                      small = module.function("at_most_128");
  int value = 0;
  EXPECT_HIP(hipSuccess,
             hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, reverse));
  EXPECT_EQ(value, 256);
  EXPECT_HIP(hipSuccess,
             hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, small));
  EXPECT_EQ(value, 128);
  EXPECT_HIP(hipSuccess, hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, reverse));
  EXPECT_GT(value, 0);
  EXPECT_HIP(hipSuccess, hipFuncGetAttribute(
                             &value, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, reverse));
  EXPECT_EQ(value, 160 * 1024 - 256);
  EXPECT_HIP(hipErrorInvalidValue,
             hipFuncGetAttribute(&value, static_cast<hipFunction_attribute>(77), reverse));
  EXPECT_HIP(hipSuccess,
             hipFuncSetAttribute(reverse, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
  EXPECT_HIP(
      hipErrorInvalidValue,
      hipFuncSetAttribute(reverse, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 160 * 1024));
  EXPECT_HIP(hipErrorInvalidHandle,
             hipFuncSetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0));
  // Few registers: 8 waves on each of 4 SIMDs, one wave a group.
  EXPECT_HIP(hipSuccess, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&value, small, 64, 0));
  EXPECT_EQ(value, 32);
  EXPECT_HIP(hipSuccess,
             hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&value, small, 1024, 0));
  EXPECT_EQ(value, 2);
  EXPECT_HIP(hipSuccess,
             hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&value, small, 128, 50 * 1024));
  EXPECT_EQ(value, 3) << "160 KiB of LDS hold three";
  EXPECT_HIP(hipSuccess,
             hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&value, small, 64, 200 * 1024));
  EXPECT_EQ(value, 0);
  EXPECT_HIP(hipErrorInvalidValue,
             hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&value, small, 0, 0));
}

}  // namespace
}  // namespace flydsl::emu::test
