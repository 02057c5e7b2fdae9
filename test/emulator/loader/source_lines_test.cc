// Faults, reports of checks, hangs and the trace name the source line of an instruction when the code
// object has debug information, of each kind that clang writes; without, or when it is damaged, they
// name none. CMakeLists.txt has a second run, with FLYDSL_EMU_TRACE.
#include "emulator/engine/source_lines.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <regex>

#include "emulator/engine/program_impl.h"
#include "emulator/loader/code_object.h"
#include "emulator/memory/address_space.h"
#include "llvm/BinaryFormat/ELF.h"
#include "test/emulator/loader/test_objects.h"

namespace flydsl::emu {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const std::string &path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// "debug_kernels.hip:12" for the line that ends in "// here: mark".
std::string line(const std::string &mark) {
  static const std::string kSource = text_of(FLYDSL_AOT_TEST_SOURCE);
  const size_t at = kSource.find("// here: " + mark + "\n");
  EXPECT_NE(at, std::string::npos) << mark;
  const auto newlines = std::count(kSource.begin(), kSource.begin() + long(at), '\n');
  return "debug_kernels.hip:" + std::to_string(newlines + 1);
}

LoadResult load(const std::vector<char> &bytes) {
  TargetId device;
  std::string error;
  EXPECT_TRUE(parse_target_id("gfx950:sramecc+:xnack-", &device, &error)) << error;
  return load_code_object(bytes.data(), bytes.size(), device);
}

// Runs a kernel of (u32 *out, u32 count): out has `count` words.
std::string fault_of(const CodeObject &object, const char *name, const char *checks,
                     uint32_t work_items = 64) {
  const LoadedKernel *kernel = object.find_kernel(name);
  EXPECT_NE(kernel, nullptr) << name;
  if (!kernel) return {};
  constexpr uint32_t kWords = 8;
  void *out = nullptr;
  const auto space = &AddressSpace::instance();
  std::vector<uint32_t> words(std::max(kWords, work_items), 0);
  const uint32_t count = std::strncmp(name, "past_end", 8) == 0 ? kWords : uint32_t(words.size());
  struct {
    void *out;
    uint32_t count;
    uint32_t hidden[64];
  } arguments = {words.data(), count, {}};
  space->remember(words.data(), size_t{count} * 4, true, "hipMalloc");
  space->remember(&arguments, sizeof arguments, false, "kernel arguments");
  out = words.data();
  Dispatch dispatch;
  dispatch.block[0] = work_items;
  dispatch.kernarg = &arguments;
  DispatchOptions options;
  options.threads = 1;
  options.checks = checks;
  const std::string fault =
      run_dispatch(kernel->kernel, dispatch, *space->snapshot(), options).fault;
  space->forget(out);
  space->forget(&arguments);
  return fault;
}

class SourceLinesOf : public testing::TestWithParam<const char *> {
 protected:
  void SetUp() override {
    const LoadResult result = load(test::read_object(GetParam()));
    ASSERT_TRUE(result.object) << result.error;
    object_ = result.object;
  }
  std::shared_ptr<CodeObject> object_;
};

TEST_P(SourceLinesOf, InlinedFunctions) {
  EXPECT_THAT(fault_of(*object_, "past_end", ""),
              HasSubstr(" (" + line("store") + " inlined at " + line("inner call") +
                        " inlined at " + line("outer call") + ") `global_store_dword"));
}

TEST_P(SourceLinesOf, CalledFunction) {
  EXPECT_THAT(fault_of(*object_, "past_end_in_call", ""),
              HasSubstr(" (" + line("store of a call") + ") `flat_store_dword"));
}

TEST_P(SourceLinesOf, WaitcntNamesBothInstructions) {
  EXPECT_THAT(fault_of(*object_, "missing_wait", "waitcnt"),
              testing::AllOf(HasSubstr("(" + line("too early") + ") `v_add"),
                             HasSubstr(" (" + line("load") + ") is in flight")));
}

TEST_P(SourceLinesOf, RaceNamesBothInstructions) {
  EXPECT_THAT(fault_of(*object_, "lds_race", "race", 128),
              testing::AllOf(HasSubstr("(" + line("read") + ") `ds_read"),
                             HasSubstr(" (" + line("write") + ") `ds_write")));
}

TEST_P(SourceLinesOf, Trace) {
  const char *path = std::getenv("FLYDSL_EMU_TRACE");
  if (!path) GTEST_SKIP() << "no FLYDSL_EMU_TRACE";
  fault_of(*object_, "lds_race", "", 128);
  EXPECT_THAT(text_of(path), testing::ContainsRegex("lds_race .0,0,0.[.]0 0x[0-9a-f]+ [(]" +
                                                    line("write") + "[)] exec=f+ ds_write"));
}

TEST_P(SourceLinesOf, FramesForAnyOffset) {
  const Program &program = *object_->find_kernel("past_end")->kernel.program;
  int stores = 0;
  for (uint32_t op = 0; op + 1 < program.ops.size(); ++op) {
    if (program.text_of(op).rfind("global_store", 0) != 0) continue;
    const auto frames = source_frames(program, program.offsets[op]);
    if (frames.size() != 3) continue;
    ++stores;
    EXPECT_EQ(frames[0].file, FLYDSL_AOT_TEST_SOURCE);
    EXPECT_GT(frames[0].column, 0u);
    EXPECT_THAT(frames[0].function, HasSubstr("fill"));
    EXPECT_EQ(frames[2].function, "past_end");
  }
  EXPECT_EQ(stores, 1) << "only one is inlined twice";
  EXPECT_EQ(source_line(program, uint64_t{1} << 32), "");
  EXPECT_EQ(source_line(program, ~uint64_t{0}), "");
}

INSTANTIATE_TEST_SUITE_P(, SourceLinesOf,
                         testing::Values("debug_full.co", "debug_lines.co", "debug_dwarf4.co",
                                         "debug_zstd.co", "debug_zlib.co"),
                         [](const auto &info) {
                           const std::string name = info.param;
                           return name.substr(6, name.size() - 9);
                         });

TEST(SourceLines, HangNamesWhereWavesAre) {
  const LoadResult result = load(test::read_object("debug_full.co"));
  ASSERT_TRUE(result.object) << result.error;
  setenv("FLYDSL_EMU_INSTRUCTION_LIMIT", "30000", 1);
  const std::string fault = fault_of(*result.object, "hang", "");
  unsetenv("FLYDSL_EMU_INSTRUCTION_LIMIT");
  EXPECT_THAT(fault, HasSubstr("passed the limit"));
  EXPECT_THAT(fault, HasSubstr("(" + line("spin") + ") `"));
}

TEST(SourceLines, DeadlockNamesWhereWavesAre) {
  const LoadResult result = load(test::read_object("debug_full.co"));
  ASSERT_TRUE(result.object) << result.error;
  const std::string fault = fault_of(*result.object, "deadlock", "barrier", 128);
  EXPECT_THAT(fault, HasSubstr("(" + line("barrier") + ") `s_barrier"));
  EXPECT_THAT(fault, HasSubstr("(" + line("spins") + ") `"));
}

TEST(SourceLines, CompressedSectionsAreCompressed) {
  EXPECT_LT(test::read_object("debug_zstd.co").size(), test::read_object("debug_full.co").size());
  EXPECT_LT(test::read_object("debug_zlib.co").size(), test::read_object("debug_full.co").size());
}

TEST(SourceLines, NoneWithoutDebugInformation) {
  const LoadResult result = load(test::read_object("debug_none.co"));
  ASSERT_TRUE(result.object) << result.error;
  const std::string fault = fault_of(*result.object, "past_end", "");
  EXPECT_THAT(fault, testing::ContainsRegex("at 0x[0-9a-f]+ `global_store_dword"));
  EXPECT_THAT(fault, Not(HasSubstr("debug_kernels")));
}

// The bytes of a section in the file.
std::pair<size_t, size_t> section_of(const std::vector<char> &object, const std::string &name) {
  using namespace llvm::ELF;
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  const auto section = [&](unsigned i) {
    Elf64_Shdr s;
    std::memcpy(&s, object.data() + header.e_shoff + i * sizeof s, sizeof s);
    return s;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (unsigned i = 0; i < header.e_shnum; ++i)
    if (name == object.data() + names.sh_offset + section(i).sh_name)
      return {section(i).sh_offset, section(i).sh_size};
  ADD_FAILURE() << name;
  return {};
}

// Asks for every instruction's line; returns how many have one.
size_t ask_all(const CodeObject &object) {
  const Program &program = *object.find_kernel("past_end")->kernel.program;
  size_t known = 0;
  for (const uint32_t offset : program.offsets) known += !source_line(program, offset).empty();
  return known;
}

class DamagedDebugInformation : public testing::TestWithParam<const char *> {};

TEST_P(DamagedDebugInformation, IsNoLineAndNoCrash) {
  constexpr uint64_t kSeed = 20251129;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  const std::string object_name = GetParam();
  const std::vector<char> good = test::read_object(object_name);
  const LoadResult whole = load(good);
  ASSERT_TRUE(whole.object) << whole.error;
  const size_t all = ask_all(*whole.object);
  EXPECT_GT(all, 50u);
  int fewer = 0;
  std::vector<std::string> sections = {".debug_line", ".debug_info", ".debug_abbrev"};
  if (object_name != "debug_dwarf4.co")
    sections.insert(sections.end(), {".debug_line_str", ".debug_str_offsets", ".debug_addr"});
  for (const std::string &name : sections) {
    const auto [begin, bytes] = section_of(good, name);
    for (int round = 0; round < 100; ++round) {
      std::vector<char> bad = good;
      for (uint64_t flips = 1 + random() % 4; flips; --flips) {
        constexpr char kValues[] = {0, 1, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff)};
        char &byte = bad[begin + random() % bytes];
        byte = random() % 2 ? static_cast<char>(byte ^ 1 << random() % 8)
                            : kValues[random() % sizeof kValues];
      }
      const LoadResult result = load(bad);
      ASSERT_TRUE(result.object) << "loading does not need it: " << result.error;
      fewer += ask_all(*result.object) < all;
    }
  }
  EXPECT_GT(fewer, 30) << "damage that nobody notices is no test";
}
INSTANTIATE_TEST_SUITE_P(, DamagedDebugInformation,
                         testing::Values("debug_full.co", "debug_dwarf4.co", "debug_zstd.co"),
                         [](const auto &info) {
                           const std::string name = info.param;
                           return name.substr(6, name.size() - 9);
                         });

TEST(SourceLines, SectionHeadersThatLieAreNoLines) {
  using namespace llvm::ELF;
  const std::vector<char> good = test::read_object("debug_full.co");
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof header);
  const auto with = [&](auto change) {
    std::vector<char> bad = good;
    Elf64_Ehdr changed = header;
    change(bad, changed);
    std::memcpy(bad.data(), &changed, sizeof changed);
    const LoadResult result = load(bad);
    EXPECT_TRUE(result.object) << result.error;
    return result.object ? ask_all(*result.object) : size_t{1};
  };
  EXPECT_EQ(with([](auto &, Elf64_Ehdr &h) { h.e_shoff = UINT64_MAX - 8; }), 0u);
  EXPECT_EQ(with([](auto &, Elf64_Ehdr &h) { h.e_shnum = 0xffff; }), 0u);
  EXPECT_EQ(with([](auto &, Elf64_Ehdr &h) { h.e_shstrndx = 0xfff0; }), 0u);
  EXPECT_EQ(with([](auto &, Elf64_Ehdr &h) { h.e_shentsize = 1; }), 0u);
  EXPECT_EQ(with([&](auto &bad, Elf64_Ehdr &) {
              for (unsigned i = 1; i < header.e_shnum; ++i) {
                const uint64_t past = good.size();
                std::memcpy(bad.data() + header.e_shoff + i * sizeof(Elf64_Shdr) +
                                offsetof(Elf64_Shdr, sh_offset),
                            &past, sizeof past);
              }
            }),
            0u);
}

}  // namespace
}  // namespace flydsl::emu
