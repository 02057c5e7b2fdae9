#include "src/status/status.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>

#include "src/log/log.h"

namespace flydsl {
namespace {

constexpr flydsl_aot_status kAll[] = {FLYDSL_AOT_OK,
                                      FLYDSL_AOT_INVALID_ARGUMENT,
                                      FLYDSL_AOT_INVALID_STRUCT_SIZE,
                                      FLYDSL_AOT_INVALID_SHAPE,
                                      FLYDSL_AOT_INVALID_STRIDE,
                                      FLYDSL_AOT_INVALID_DTYPE,
                                      FLYDSL_AOT_INVALID_POINTER,
                                      FLYDSL_AOT_INVALID_MASK,
                                      FLYDSL_AOT_INVALID_SCALE,
                                      FLYDSL_AOT_INVALID_WORKSPACE,
                                      FLYDSL_AOT_UNSUPPORTED_DTYPE,
                                      FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
                                      FLYDSL_AOT_UNSUPPORTED_ARCH,
                                      FLYDSL_AOT_UNSUPPORTED_FEATURE,
                                      FLYDSL_AOT_UNSUPPORTED_SIZE,
                                      FLYDSL_AOT_NEVER_EXECUTED,
                                      FLYDSL_AOT_NO_KERNEL,
                                      FLYDSL_AOT_ARCHIVE_NOT_FOUND,
                                      FLYDSL_AOT_ARCHIVE_IO,
                                      FLYDSL_AOT_ARCHIVE_CORRUPT,
                                      FLYDSL_AOT_ARCHIVE_VERSION,
                                      FLYDSL_AOT_ARCHIVE_MISMATCH,
                                      FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND,
                                      FLYDSL_AOT_NO_DEVICE,
                                      FLYDSL_AOT_DEVICE_ERROR,
                                      FLYDSL_AOT_OUT_OF_DEVICE_MEMORY,
                                      FLYDSL_AOT_DEVICE_LOST,
                                      FLYDSL_AOT_KERNEL_LOAD_FAILED,
                                      FLYDSL_AOT_PROCESS_FORKED,
                                      FLYDSL_AOT_COMPILER_NOT_FOUND,
                                      FLYDSL_AOT_COMPILE_FAILED,
                                      FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH,
                                      FLYDSL_AOT_OUT_OF_HOST_MEMORY,
                                      FLYDSL_AOT_INTERNAL};

TEST(Status, EveryCodeHasItsOwnNameAndSentence) {
  std::set<std::string> names, sentences;
  for (const flydsl_aot_status code : kAll) {
    EXPECT_STRNE(status_name(code), "UNKNOWN_STATUS") << code;
    names.insert(status_name(code));
    const std::string sentence = status_sentence(code);
    EXPECT_FALSE(sentence.empty() || sentence.back() == '.') << sentence;
    sentences.insert(sentence);
  }
  EXPECT_EQ(names.size(), std::size(kAll));
  EXPECT_EQ(sentences.size(), std::size(kAll));
  int known = 0;
  for (flydsl_aot_status code = -1000; code < 2000; ++code) {
    known += std::strcmp(status_name(code), "UNKNOWN_STATUS") != 0;
  }
  EXPECT_EQ(known, static_cast<int>(std::size(kAll)));
  EXPECT_STREQ(status_name(FLYDSL_AOT_UNSUPPORTED_DTYPE), "UNSUPPORTED_DTYPE");
}

TEST(Status, LastErrorIsPerThreadAndKeptBySuccess) {
  EXPECT_EQ(guarded("f", [] { return error(FLYDSL_AOT_INVALID_SHAPE, "q has rank %d", 3); }),
            FLYDSL_AOT_INVALID_SHAPE);
  EXPECT_STREQ(last_error(), "f: q has rank 3");
  std::thread([] {
    EXPECT_STREQ(last_error(), "");
    (void)guarded("g", [] { return error(FLYDSL_AOT_NO_KERNEL, "other"); });
    EXPECT_STREQ(last_error(), "g: other");
  }).join();
  EXPECT_EQ(guarded("f", [] { return Status(); }), FLYDSL_AOT_OK);
  EXPECT_STREQ(last_error(), "f: q has rank 3");
}

TEST(Status, NoExceptionGetsOut) {
  EXPECT_EQ(guarded("f", []() -> Status { throw std::bad_alloc(); }),
            FLYDSL_AOT_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(guarded("f", []() -> Status { throw std::runtime_error("surprise"); }),
            FLYDSL_AOT_INTERNAL);
  EXPECT_STREQ(last_error(), "f: surprise");
  EXPECT_EQ(guarded("f", []() -> Status { throw 7; }), FLYDSL_AOT_INTERNAL);
}

TEST(Status, LongMessagesAreCutAtACharacter) {
  char out[8];
  copy_utf8(out, sizeof out, "12345\xE2\x82\xAC");  // the euro sign would end one byte too late
  EXPECT_STREQ(out, "12345");
  copy_utf8(out, sizeof out, "1234\xE2\x82\xAC");
  EXPECT_STREQ(out, "1234\xE2\x82\xAC");
  copy_utf8(out, 1, "x");
  EXPECT_STREQ(out, "");
  (void)guarded("f", [] { return Status(FLYDSL_AOT_INTERNAL, std::string(100000, 'x')); });
  EXPECT_GT(std::strlen(last_error()), 1000u);
  EXPECT_LT(std::strlen(last_error()), 10000u);
}

TEST(Log, Levels) {
  EXPECT_EQ(parse_log_level(nullptr), LogLevel::Off);
  EXPECT_EQ(parse_log_level(""), LogLevel::Off);
  EXPECT_EQ(parse_log_level("loud"), LogLevel::Off);
  EXPECT_EQ(parse_log_level("error"), LogLevel::Error);
  EXPECT_EQ(parse_log_level("warn"), LogLevel::Warn);
  EXPECT_EQ(parse_log_level("info"), LogLevel::Info);
  EXPECT_EQ(parse_log_level("debug"), LogLevel::Debug);
}

TEST(Log, OneLineOnStderr) {
  testing::internal::CaptureStderr();
  log_line(LogLevel::Warn, "%s %d", "value", 3);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "flydsl_aot warn: value 3\n");
  testing::internal::CaptureStderr();
  log_line(LogLevel::Error, "%s", std::string(20000, 'y').c_str());
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.back(), '\n');
  EXPECT_LT(line.size(), 5000u);
  // Off by default: the environment of the tests does not set FLYDSL_AOT_LOG.
  testing::internal::CaptureStderr();
  FLYDSL_LOG(Error, "not wanted");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace flydsl
