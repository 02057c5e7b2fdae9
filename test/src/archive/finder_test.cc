#include "src/archive/finder.h"

#include "src/paths/paths.h"
#include "test/src/archive/archive_fixture.h"

namespace flydsl::test {
namespace {

using archive::Archive;
using archive::find_archive;
namespace fs = std::filesystem;

// Nothing may lie beside the test program, else these tests would find it.
class Finder : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(odd_);
    write_bytes(odd_ + "/flydsl_aot.gfx950.fda", build_or_die(small_spec()));
  }
  Status find(const char *option, const std::string &arch = "gfx950", uint64_t abi_id = kAbiId) {
    found_.reset();
    return find_archive(arch, option, abi_id, &found_);
  }
  TempFolder folder_;
  const std::string odd_ = folder_.file("Ordner mit \xC3\xA4\xE2\x82\xAC und Leerzeichen");
  std::unique_ptr<Archive> found_;
  ScopedEnv no_env_{"FLYDSL_AOT_ARCHIVE_PATH", nullptr};
};

TEST_F(Finder, OptionFileOrFolder) {
  ASSERT_TRUE(find((odd_ + "/flydsl_aot.gfx950.fda").c_str()).ok());
  ASSERT_TRUE(find(odd_.c_str()).ok());
  EXPECT_EQ(found_->path(), odd_ + "/flydsl_aot.gfx950.fda");
  ASSERT_TRUE(find((odd_ + "/").c_str()).ok());
}

TEST_F(Finder, OptionIsTheOnlyPlace) {
  const ScopedEnv env("FLYDSL_AOT_ARCHIVE_PATH", odd_.c_str());
  const Status status = find(folder_.file("absent").c_str());
  EXPECT_EQ(status.code(), FLYDSL_AOT_ARCHIVE_NOT_FOUND);
  EXPECT_NE(status.message().find(folder_.file("absent")), std::string::npos);
  EXPECT_EQ(status.message().find(odd_), std::string::npos);
}

TEST_F(Finder, EnvironmentInOrder) {
  const std::string list = folder_.file("absent") + "::" + odd_;
  const ScopedEnv env("FLYDSL_AOT_ARCHIVE_PATH", list.c_str());
  const Status status = find(nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(found_->path(), odd_ + "/flydsl_aot.gfx950.fda");
}

TEST_F(Finder, NotFoundListsEveryPlace) {
  const std::string beside = own_directories().front() + "/flydsl_aot.gfx942.fda";
  const struct {
    const char *environment;
    std::vector<std::string> places;
  } cases[] = {{nullptr, {beside, "../share/flydsl_aot"}},
               {"::", {beside, "../share/flydsl_aot"}},
               {"/nonexistent/one:/nonexistent/two", {"/nonexistent/one", "/nonexistent/two"}}};
  for (const auto &row : cases) {
    const ScopedEnv env("FLYDSL_AOT_ARCHIVE_PATH", row.environment);
    const Status status = find(nullptr, "gfx942");
    EXPECT_EQ(status.code(), FLYDSL_AOT_ARCHIVE_NOT_FOUND);
    const std::string &message = status.message();
    EXPECT_NE(message.find("No such file"), std::string::npos) << message;
    for (const std::string &place : row.places)
      EXPECT_NE(message.find(place), std::string::npos) << place << " | " << message;
    if (row.environment && row.environment[0] == '/') {
      EXPECT_EQ(message.find(beside), std::string::npos) << message;
    }
  }
}

TEST_F(Finder, OtherArchitecturesAreNamed) {
  const Status folder = find(odd_.c_str(), "gfx942");
  EXPECT_EQ(folder.code(), FLYDSL_AOT_UNSUPPORTED_ARCH);
  EXPECT_NE(folder.message().find("gfx950"), std::string::npos) << folder.message();
  const Status file = find((odd_ + "/flydsl_aot.gfx950.fda").c_str(), "gfx942");
  EXPECT_EQ(file.code(), FLYDSL_AOT_UNSUPPORTED_ARCH);
  EXPECT_NE(file.message().find("an archive for gfx950"), std::string::npos) << file.message();
  EXPECT_EQ(found_, nullptr);
}

TEST_F(Finder, ADamagedArchiveIsNotPassedOver) {
  fs::create_directories(folder_.file("first"));
  auto bytes = build_or_die(small_spec());
  bytes[130] ^= 1;
  write_bytes(folder_.file("first/flydsl_aot.gfx950.fda"), bytes);
  const ScopedEnv env("FLYDSL_AOT_ARCHIVE_PATH", (folder_.file("first") + ":" + odd_).c_str());
  EXPECT_EQ(find(nullptr).code(), FLYDSL_AOT_ARCHIVE_CORRUPT);
  const ScopedEnv other("FLYDSL_AOT_ARCHIVE_PATH", odd_.c_str());
  EXPECT_EQ(find(nullptr, "gfx950", kAbiId + 1).code(), FLYDSL_AOT_ARCHIVE_MISMATCH);
}

TEST_F(Finder, ArchiveOfAnotherArchitectureInTheListIsPassedOver) {
  archive::ArchiveSpec other;
  other.arch = "gfx942";
  other.abi_id = kAbiId;
  write_bytes(folder_.file("x.fda"), build_or_die(other));
  const ScopedEnv env("FLYDSL_AOT_ARCHIVE_PATH", (folder_.file("x.fda") + ":" + odd_).c_str());
  ASSERT_TRUE(find(nullptr).ok());
  EXPECT_EQ(found_->path(), odd_ + "/flydsl_aot.gfx950.fda");
}

}  // namespace
}  // namespace flydsl::test
