// Kernels beside the archive's: listed after them, compiled when they are used, once, and kept.
#include "src/jit/compiler.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <zstd.h>

#include <barrier>
#include <filesystem>
#include <thread>

#include "src/select/select.h"
#include "test/src/archive/archive_fixture.h"
#include "test/src/device/fake_hip.h"
#include "test/src/jit/fake_hiprtc.h"

namespace flydsl::test {
namespace {

namespace fs = std::filesystem;

// A table of two new kernels of key 5, one of another architecture and one that the archive of archive_fixture.h has.
std::string sources_text() {
  std::string table = "columns\n";
  const auto row = [&](const std::string &archs, const std::string &name, int key,
                       const std::string &source) {
    table += archs + "\top\t" + name + "\t" + source +
             "\tpersistent\t0x4d\t16\t256\t1\t1\t64\t32\t0\t7\t64\t" + std::to_string(key) +
             "\t4\t0\t100\t0\t1000\n";
  };
  row("gfx942,gfx950", "y", 5, "op/y.hip");
  row("gfx950", "x", 5, "op/x.hip");
  row("gfx950", "a", 5, "op/x.hip");
  row("gfx942", "z", 6, "op/x.hip");
  std::string text;
  const auto file = [&](const std::string &name, const std::string &content) {
    text += name + "\t" + std::to_string(content.size()) + "\n" + content;
  };
  file("recipes.tsv", table);
  file("common/b.h", "#include \"common/c.h\"\nb\n");
  file("common/c.h", "#include \"common/b.h\"\nc\n");
  file("common/unused.h", "unused\n");
  file("op/x.hip", "#include \"common/b.h\"\nx\n");
  file("op/y.hip", "y\n");
  return text;
}

std::vector<unsigned char> compressed(const std::string &text) {
  std::vector<unsigned char> frame(ZSTD_compressBound(text.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 3));
  return frame;
}

class CompilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = open_fake_hiprtc(FAKE_HIPRTC);
    ASSERT_NE(fake_, nullptr);
    fake_->reset();
    open_fake_hip(FAKE_HIP7)->reset();
    ASSERT_TRUE(device::Runtime::open(FLYDSL_AOT_DEVICE_HIP, FAKE_HIP7, &runtime_).ok());
    write_bytes(folder_.file("a.fda"), build_or_die(small_spec()));
    reopen();
  }
  void reopen() {
    compiler_.reset();
    ASSERT_TRUE(archive::Archive::open(folder_.file("a.fda"), kAbiId, &archive_).ok());
    const Status status = jit::Compiler::open(compressed(sources_text()), &runtime_->api(),
                                              archive_.get(), &compiler_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Status image(uint32_t entry) { return compiler_->image(entry, &image_); }
  std::string image_text() const { return {image_.begin(), image_.end()}; }

  TempFolder folder_;
  ScopedEnv cache_{"FLYDSL_AOT_JIT_CACHE_DIR", (folder_.path() + "/cache").c_str()};
  ScopedEnv library_{"FLYDSL_AOT_HIPRTC_LIBRARY", FAKE_HIPRTC};
  FakeHiprtc *fake_ = nullptr;
  std::unique_ptr<device::Runtime> runtime_;
  std::unique_ptr<archive::Archive> archive_;
  std::unique_ptr<jit::Compiler> compiler_;
  std::vector<unsigned char> image_;
};
constexpr uint32_t kY = 3, kX = 4;

TEST_F(CompilerTest, AddedKernelsComeAfterTheArchives) {
  ASSERT_EQ(archive_->entries().size(),
            5u);  // a, b, c; y, x: "a" is there already, "z" is for another architecture
  EXPECT_EQ(archive_->file_entries(), 3u);
  EXPECT_STREQ(archive_->string(archive_->entries()[kY].name), "y");
  EXPECT_STREQ(archive_->string(archive_->entries()[kX].name), "x");
  EXPECT_STREQ(archive_->string(archive_->entries()[kX].backend), "jit");
  EXPECT_EQ(archive_->entries()[kX].tile[0], 64u);
  EXPECT_EQ(archive_->entries()[kX].lds_dynamic_bytes, 7u);
  EXPECT_EQ(archive_->target(kX).processor, "gfx950");
  EXPECT_TRUE(archive_->find("op", 6).empty());
  EXPECT_TRUE(archive_->find_added("op", 6).empty());
  EXPECT_TRUE(archive_->find_added("o", 5).empty());
  EXPECT_EQ(archive_->find("op", 5).size(), 2u);
  ASSERT_EQ(archive_->find_added("op", 5).size(), 2u);
  // Their code objects are not the file's.
  EXPECT_EQ(archive_->read(kX, &image_).code(), FLYDSL_AOT_INVALID_ARGUMENT);

  const archive::TargetId device = *archive::parse_target_id("gfx950:sramecc+:xnack-");
  select::Policy policy;
  select::Problem problem{"op", 9, 2, 10, 10};
  problem.fallback_keys[0] = 5;
  problem.fallbacks = 1;
  select::Candidates candidates(*archive_, problem);
  std::string order;
  while (const archive::Candidate *candidate = candidates.next())
    order += archive_->string(archive_->entries()[candidate->entry].name);
  EXPECT_EQ(order, "cbayx");
  // Taken only where no kernel of the file fits.
  EXPECT_EQ(select::select({*archive_, device, policy}, problem)->entry, 2u);
  problem = {"op", 5, 4, 100, 1000};
  EXPECT_EQ(select::select({*archive_, device, policy}, problem)->entry, 0u);
  ASSERT_TRUE(select::make_policy(*archive_, {"o", nullptr}, {"o", "jit"}, &policy).ok());
  EXPECT_EQ(select::select({*archive_, device, policy}, problem)->entry, kY);
  select::Policy forced;
  ASSERT_TRUE(select::make_policy(*archive_, {"o", "x"}, {"o", nullptr}, &forced).ok());
  EXPECT_EQ(select::select({*archive_, device, forced}, problem)->entry, kX);
}

TEST_F(CompilerTest, WithoutAnArchive) {
  bool known = false;
  ASSERT_TRUE(jit::Compiler::knows(compressed(sources_text()), "gfx942", &known).ok());
  EXPECT_TRUE(known);
  ASSERT_TRUE(jit::Compiler::knows(compressed(sources_text()), "gfx94", &known).ok());
  EXPECT_FALSE(known);
  std::unique_ptr<archive::Archive> none = archive::Archive::without_file("gfx942", true);
  EXPECT_STREQ(none->arch(), "gfx942");
  EXPECT_TRUE(none->entries().empty());
  EXPECT_TRUE(none->find("op", 5).empty());
  ASSERT_TRUE(
      jit::Compiler::open(compressed(sources_text()), nullptr, none.get(), &compiler_).ok());
  ASSERT_EQ(none->entries().size(), 2u);
  EXPECT_EQ(none->find_added("op", 6).size(), 1u);
  EXPECT_TRUE(compiler_->available().ok());  // without a device nobody asks for hipRTC
}

TEST_F(CompilerTest, CompilesWithItsHeadersAndKeeps) {
  ASSERT_TRUE(image(kX).ok());
  EXPECT_NE(image_text().find("ELF of #include \"common/b.h\"\nx\n"), std::string::npos);
  EXPECT_EQ(fake_->headers, 2);  // each once, though they include each other
  EXPECT_STREQ(fake_->options, "--offload-arch=gfx950 -O3 -std=c++20 -fno-slp-vectorize");
  EXPECT_EQ(fake_->compilations, 1);
  const std::vector<unsigned char> first = image_;
  reopen();
  ASSERT_TRUE(image(kX).ok());
  EXPECT_EQ(image_, first);
  EXPECT_EQ(fake_->compilations, 1);
  ASSERT_TRUE(image(kY).ok());
  EXPECT_EQ(fake_->compilations, 2);
  EXPECT_EQ(fake_->live_programs, 0);
  // Another compiler's code is not taken, and does not replace the first one's.
  std::strcpy(fake_->compiler, "fake 2");
  reopen();
  ASSERT_TRUE(image(kX).ok());
  EXPECT_EQ(fake_->compilations, 3);
  std::strcpy(fake_->compiler, "fake 1");
  reopen();
  ASSERT_TRUE(image(kX).ok());
  EXPECT_EQ(fake_->compilations, 3);
  // A damaged file is made anew.
  for (const auto &file : fs::directory_iterator(folder_.file("cache"))) fs::resize_file(file, 60);
  reopen();
  ASSERT_TRUE(image(kX).ok());
  EXPECT_EQ(image_, first);
  EXPECT_EQ(fake_->compilations, 4);
}

TEST_F(CompilerTest, WorksWhereNothingCanBeKept) {
  const ScopedEnv nowhere("FLYDSL_AOT_JIT_CACHE_DIR", "/proc/none");
  for (int i = 1; i <= 2; ++i) {
    reopen();
    ASSERT_TRUE(image(kX).ok());
    EXPECT_EQ(fake_->compilations, i);
  }
}

TEST_F(CompilerTest, FailuresAreTold) {
  fake_->compile_error = 6;
  Status status = image(kX);
  EXPECT_EQ(status.code(), FLYDSL_AOT_COMPILE_FAILED);
  for (const char *part :
       {"kernel 'x'", FAKE_HIPRTC, "6 (HIPRTC_ERROR_COMPILATION)", "line 7: what it does not know"})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  fake_->compile_error = 0;
  fake_->create_error = 2;
  EXPECT_EQ(image(kX).code(), FLYDSL_AOT_COMPILE_FAILED);
  fake_->create_error = 0;
  fake_->code_error = 11;
  EXPECT_EQ(image(kX).code(), FLYDSL_AOT_COMPILE_FAILED);
  fake_->code_error = 0;
  EXPECT_FALSE(fs::exists(folder_.file("cache")));  // nothing of it was kept
  EXPECT_EQ(fake_->live_programs, 0);
  EXPECT_TRUE(image(kX).ok());  // nor remembered

  reopen();
  {
    const ScopedEnv missing("FLYDSL_AOT_HIPRTC_LIBRARY", "/nonexistent.so");
    status = compiler_->available();
    EXPECT_EQ(status.code(), FLYDSL_AOT_COMPILER_NOT_FOUND);
    EXPECT_NE(status.message().find("'/nonexistent.so' (FLYDSL_AOT_HIPRTC_LIBRARY)"),
              std::string::npos)
        << status.message();
    EXPECT_EQ(image(kX).code(), FLYDSL_AOT_COMPILER_NOT_FOUND);
  }
  {
    const ScopedEnv other("FLYDSL_AOT_HIPRTC_LIBRARY", FAKE_HIP7);
    status = image(kX);
    EXPECT_EQ(status.code(), FLYDSL_AOT_COMPILER_NOT_FOUND);
    EXPECT_NE(status.message().find("lacks the function(s) hiprtcGetErrorString, hiprtcVersion"),
              std::string::npos)
        << status.message();
  }
  {
    // Every place, with what was wrong there.
    const ScopedEnv unset("FLYDSL_AOT_HIPRTC_LIBRARY", nullptr);
    status = image(kX);
    EXPECT_EQ(status.code(), FLYDSL_AOT_COMPILER_NOT_FOUND);
    for (const char *part :
         {"beside the HIP runtime", "libhiprtc.so.7", "loader search", "the device library"})
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_TRUE(image(kX).ok());
}

TEST_F(CompilerTest, ManyThreadsOneCompilation) {
  constexpr int kThreads = 16;
  fake_->compile_delay_us = 3000;
  std::barrier start(kThreads);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::vector<unsigned char> own;
      start.arrive_and_wait();
      failures += !compiler_->image(i % 2 ? kX : kY, &own).ok() || own.empty();
    });
  }
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fake_->compilations, 2);
}

TEST_F(CompilerTest, ProcessesAtOnce) {
  fake_->compile_delay_us = 3000;
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const bool good = image(kX).ok() && image_text().find("ELF of") != std::string::npos;
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ASSERT_TRUE(image(kX).ok());
  EXPECT_EQ(fake_->compilations, 0);  // of this process: it found theirs
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.file("cache")), fs::directory_iterator()),
            1);
}

TEST(Sources, WhatABuildCannotHaveMadeIsRefused) {
  std::unique_ptr<jit::Sources> sources;
  const std::string good = sources_text();
  ASSERT_TRUE(jit::Sources::open(compressed(good), &sources).ok());
  EXPECT_EQ(sources->of("x", "gfx950").size(), 3u);
  EXPECT_EQ(sources->of("y", "gfx942").size(), 1u);
  EXPECT_TRUE(sources->of("x", "gfx942").empty());
  EXPECT_TRUE(sources->of("unknown", "gfx950").empty());
  const auto refused = [&](const std::string &text) {
    return jit::Sources::open(compressed(text), &sources).code() == FLYDSL_AOT_INTERNAL;
  };
  EXPECT_TRUE(refused(good.substr(0, good.size() - 1)));
  EXPECT_TRUE(refused("recipes.tsv\t99999\n"));
  std::string bad = good;
  bad.replace(bad.find("0x4d"), 4, "0xzz");
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.replace(bad.find("op/y.hip"), 8, "op/q.hip");
  EXPECT_TRUE(refused(bad));
  std::vector<unsigned char> frame = compressed(good);
  frame.resize(frame.size() / 2);
  EXPECT_EQ(jit::Sources::open(frame, &sources).code(), FLYDSL_AOT_INTERNAL);
}

}  // namespace
}  // namespace flydsl::test
