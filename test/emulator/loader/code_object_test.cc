#include "emulator/loader/code_object.h"

#include <gtest/gtest.h>

#include <cstring>

#include "emulator/memory/address_space.h"
#include "llvm/BinaryFormat/ELF.h"
#include "test/emulator/loader/test_objects.h"

namespace flydsl::emu {
namespace {

using test::read_image;

TargetId device(const char *text = "gfx950:sramecc+:xnack-") {
  TargetId id;
  std::string error;
  EXPECT_TRUE(parse_target_id(text, &id, &error)) << error;
  return id;
}

LoadResult load(const std::vector<char> &bytes, const char *target = "gfx950:sramecc+:xnack-") {
  return load_code_object(bytes.data(), bytes.size(), device(target));
}

std::shared_ptr<CodeObject> loaded(const std::string &name) {
  const LoadResult result = load(read_image(name));
  EXPECT_EQ(result.status, LoadStatus::kOk) << name << ": " << result.error;
  return result.object;
}

class CodeObjectVersions : public testing::TestWithParam<const char *> {};

TEST_P(CodeObjectVersions, KernelsAreComplete) {
  const auto object = loaded(GetParam());
  ASSERT_TRUE(object);
  EXPECT_EQ(object->kernels().size(), 9u);
  for (const auto &[name, loaded_kernel] : object->kernels()) {
    SCOPED_TRACE(name);
    const Kernel &kernel = loaded_kernel.kernel;
    EXPECT_EQ(kernel.name, name);
    EXPECT_NE(kernel.program, nullptr);
    EXPECT_EQ(kernel.entry_address % 256, 0u);
    EXPECT_EQ(kernel.wave_size, 64u);
    EXPECT_NE(kernel.compute_pgm_rsrc1, 0u);
    const auto memory = AddressSpace::instance().snapshot();
    const Region *text = memory->find(kernel.entry_address);
    ASSERT_NE(text, nullptr);
    EXPECT_FALSE(text->writable);
    EXPECT_STREQ(text->what, "code object");
    EXPECT_GT(loaded_kernel.metadata.vgpr_count, 0u);
  }
  const LoadedKernel *by_value = object->find_kernel("scale_by_value");
  ASSERT_NE(by_value, nullptr);
  const auto &arguments = by_value->metadata.arguments;
  ASSERT_GE(arguments.size(), 4u);
  const uint32_t offsets[] = {0, 8, 16, 32}, sizes[] = {8, 4, 16, 1};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(arguments[i].offset_bytes, offsets[i]);
    EXPECT_EQ(arguments[i].size_bytes, sizes[i]);
    EXPECT_FALSE(arguments[i].hidden());
  }
  EXPECT_EQ(object->find_kernel("reverse_static")->kernel.lds_bytes, 256u);
  EXPECT_EQ(object->find_kernel("reverse_dynamic")->kernel.lds_bytes, 0u);
  EXPECT_EQ(object->find_kernel("at_most_128")->kernel.max_workgroup_size, 128u);
  EXPECT_EQ(object->find_kernel("no_such_kernel"), nullptr);
  EXPECT_EQ(object->find_kernel("vector_add.kd"), nullptr);
}
INSTANTIATE_TEST_SUITE_P(, CodeObjectVersions,
                         testing::Values("gfx950_v4.co", "gfx950_v5.co", "gfx950_v6.co",
                                         "bundle.hipfb", "gfx950_sramecc_xnack_off.co"));

TEST(CodeObject, VariablesAreRelocatedAndWritable) {
  const auto object = loaded("gfx950_v5.co");
  ASSERT_TRUE(object);
  void *counter = nullptr, *counter_address = nullptr, *table = nullptr;
  size_t bytes = 0;
  ASSERT_TRUE(object->find_global("counter", &counter, &bytes));
  EXPECT_EQ(bytes, 4u);
  int value = 0;
  std::memcpy(&value, counter, sizeof value);
  EXPECT_EQ(value, 41);
  EXPECT_TRUE(
      AddressSpace::instance().snapshot()->find(reinterpret_cast<uint64_t>(counter))->writable);
  ASSERT_TRUE(object->find_global("counter_address", &counter_address, &bytes));
  EXPECT_EQ(bytes, 8u);
  void *pointed = nullptr;
  std::memcpy(&pointed, counter_address, sizeof pointed);
  EXPECT_EQ(pointed, counter);
  ASSERT_TRUE(object->find_global("table", &table, &bytes));
  EXPECT_EQ(bytes, 16u);
  EXPECT_FALSE(
      AddressSpace::instance().snapshot()->find(reinterpret_cast<uint64_t>(table))->writable);
  EXPECT_FALSE(object->find_global("vector_add", &table, &bytes)) << "a function is no variable";
  EXPECT_FALSE(object->find_global("none", &table, &bytes));
}

TEST(CodeObject, RegionsGoWithTheObject) {
  auto object = loaded("gfx950_v5.co");
  ASSERT_TRUE(object);
  const uint64_t entry = object->find_kernel("vector_add")->kernel.entry_address;
  object.reset();
  EXPECT_EQ(AddressSpace::instance().snapshot()->find(entry), nullptr);
}

TEST(CodeObject, OtherTargetsAreRefusedByName) {
  const struct {
    const char *object;
    const char *target;
    const char *named;
  } cases[] = {
      {"gfx942.co", "gfx950:sramecc+:xnack-", "gfx942"},
      {"gfx950_v5.co", "gfx942:sramecc+:xnack-", "gfx942"},
      {"gfx950_xnack_on.co", "gfx950:sramecc+:xnack-", "xnack"},
      {"bundle.hipfb", "gfx942:sramecc+:xnack-", "gfx90a"},
  };
  for (const auto &c : cases) {
    const LoadResult result = load(read_image(c.object), c.target);
    EXPECT_EQ(result.status, LoadStatus::kWrongTarget) << c.object;
    EXPECT_FALSE(result.object);
    EXPECT_NE(result.error.find(c.named), std::string::npos) << result.error;
  }
  EXPECT_EQ(load(read_image("gfx942.co"), "gfx942:sramecc+:xnack-").status, LoadStatus::kOk);
  EXPECT_EQ(load(read_image("bundle.hipfb"), "gfx90a:sramecc+:xnack-").status, LoadStatus::kOk);
}

// One changed header field each, and what the reason must mention.
TEST(CodeObject, HeaderDamageIsNamed) {
  using namespace llvm::ELF;
  const std::vector<char> good = read_image("gfx950_v5.co");
  const struct {
    size_t offset;
    char value;
    const char *mentions;
  } cases[] = {
      {0, 'X', "not an ELF"},
      {EI_CLASS, ELFCLASS32, "64-bit"},
      {EI_DATA, ELFDATA2MSB, "little-endian"},
      {EI_OSABI, 3, "OS ABI 3"},
      {EI_ABIVERSION, 0, "version 2"},
      {EI_ABIVERSION, 9, "version 11"},
      {offsetof(Elf64_Ehdr, e_machine), 62, "machine 62"},
      {offsetof(Elf64_Ehdr, e_type), 1, "type 1"},
      {offsetof(Elf64_Ehdr, e_phentsize), 8, "program headers"},
      {offsetof(Elf64_Ehdr, e_phoff) + 3, 1, "program headers"},
  };
  for (const auto &c : cases) {
    std::vector<char> bad = good;
    bad[c.offset] = c.value;
    const LoadResult result = load(bad);
    EXPECT_EQ(result.status, LoadStatus::kInvalidImage) << c.mentions;
    EXPECT_NE(result.error.find(c.mentions), std::string::npos) << result.error;
  }
}

TEST(CodeObject, UnsupportedRelocationIsNamed) {
  std::vector<char> bad = read_image("gfx950_v5.co");
  // The only relocation is R_AMDGPU_RELATIVE64 (13) for counter_address; find its entry by its
  // addend, the symbol's value.
  using namespace llvm::ELF;
  size_t changed = 0;
  for (size_t at = 0; at + sizeof(Elf64_Rela) <= bad.size(); at += 8) {
    Elf64_Rela entry;
    std::memcpy(&entry, bad.data() + at, sizeof entry);
    if (entry.r_info != R_AMDGPU_RELATIVE64 ||
        entry.r_offset != static_cast<uint64_t>(entry.r_addend) + 8)
      continue;
    entry.setSymbolAndType(1, R_AMDGPU_GOTPCREL);
    std::memcpy(bad.data() + at, &entry, sizeof entry);
    ++changed;
  }
  ASSERT_EQ(changed, 1u);
  const LoadResult result = load(bad);
  EXPECT_EQ(result.status, LoadStatus::kInvalidImage);
  EXPECT_NE(result.error.find("R_AMDGPU_GOTPCREL"), std::string::npos) << result.error;
}

TEST(CodeObject, EmptyAndTinyInputs) {
  EXPECT_EQ(load({}).status, LoadStatus::kInvalidImage);
  EXPECT_EQ(load({'\x7f', 'E', 'L', 'F'}).status, LoadStatus::kInvalidImage);
  const std::string magic = "__CLANG_OFFLOAD_BUNDLE__";
  EXPECT_EQ(load({magic.begin(), magic.end()}).status, LoadStatus::kInvalidImage);
}

}  // namespace
}  // namespace flydsl::emu
