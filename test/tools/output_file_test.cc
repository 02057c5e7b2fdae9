// A file appears on commit only, and whatever ends the process before, nothing else is left.
#include "tools/output_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <thread>

namespace flydsl::tools {
namespace {

class Output : public ::testing::Test {
 protected:
  Output() {
    char folder[] = "/tmp/output_file_test.XXXXXX";
    folder_ = mkdtemp(folder);
    std::ofstream(target()) << "as it was";
  }
  ~Output() override { std::filesystem::remove_all(folder_); }

  std::string target() const { return folder_ + "/kept"; }
  std::string content() const {
    std::ifstream file(target());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t files() const {
    return size_t(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  // The wait status of a child that did this.
  static int status_of_child(const std::function<void()> &call) {
    const pid_t child = fork();
    if (child == 0) {
      call();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  }

  std::string folder_;
};

TEST_F(Output, CommitReplacesTheFile) {
  OutputFile file(target());
  file.write("new ");
  file.write("content");
  EXPECT_EQ(content(), "as it was");
  EXPECT_EQ(files(), 2u);
  file.commit();
  EXPECT_EQ(content(), "new content");
  EXPECT_EQ(files(), 1u);
}

TEST_F(Output, WithoutCommitNothingIsLeft) {
  { OutputFile(target()).write("half"); }
  EXPECT_EQ(content(), "as it was");
  EXPECT_EQ(files(), 1u);
  EXPECT_THROW(OutputFile("/dev/null"), std::runtime_error);
  EXPECT_THROW(OutputFile(folder_ + "/no/such/folder"), std::runtime_error);
}

TEST_F(Output, ASignalLeavesNothingAndEndsTheProcess) {
  for (const int number : {SIGHUP, SIGINT, SIGPIPE, SIGTERM}) {
    for (const bool other_thread : {false, true}) {
      const int status = status_of_child([&] {
        OutputFile first(target()), second(folder_ + "/new");
        { OutputFile(folder_ + "/third").write("gone before the signal"); }
        first.write("half");
        if (files() != 3) _exit(9);
        if (other_thread) {
          std::thread([&] { raise(number); }).join();
        } else {
          raise(number);
        }
      });
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << number << " " << status;
      EXPECT_EQ(files(), 1u) << number;
      EXPECT_EQ(content(), "as it was");
    }
  }
}

TEST_F(Output, AfterTheCommitASignalRemovesNothing) {
  const int status = status_of_child([&] {
    OutputFile file(target());
    file.write("committed");
    file.commit();
    raise(SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(content(), "committed");
  EXPECT_EQ(files(), 1u);
}

TEST_F(Output, WhatIsIgnoredStaysIgnored) {
  const int status = status_of_child([&] {
    signal(SIGHUP, SIG_IGN);
    OutputFile file(target());
    raise(SIGHUP);
    file.write("survived");
    file.commit();
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content(), "survived");
}

}  // namespace
}  // namespace flydsl::tools
