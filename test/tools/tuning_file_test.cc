// Files of tuning rows: what is kept of one that was cut off, what is replaced and what is refused.
#include "tools/tuning_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

TunedCase tuned(int rows, const std::string &origin = "model:1") {
  const std::string number = std::to_string(rows);
  return {"x=" + number,
          "dtype=4 rows=" + number + " keys=64 parallel=1 alignment=16 compute_units=256",
          "a",
          {{"a", 2.0}, {"b", 1.5}},
          origin};
}

class TuningFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "tuning-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = name + "/op.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string content() const {
    std::ifstream stream(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  void write(const std::string &text) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
  }
  // What is thrown, "" if nothing is.
  template <typename Function>
  static std::string refusal(const Function &function) {
    try {
      function();
    } catch (const ToolError &error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(TuningFileTest, OfAFileThatWasCutOffAnywhereWholeRowsAreKept) {
  {
    TuningFile file(path_, false);
    for (const int rows : {3, 1, 2}) file.add(tuned(rows));
  }
  const std::string unsorted =
      content();  // in the order of add(), as a command that was killed leaves it
  TuningFile(path_, true).finish();
  const std::string sorted = content();
  EXPECT_NE(unsorted, sorted);
  for (size_t bytes = 0; bytes <= unsorted.size(); ++bytes) {
    write(unsorted.substr(0, bytes));
    TuningFile file(path_, true);
    size_t end = 0;  // of each row, with its newline
    int kept = 0;
    for (const int rows : {3, 1, 2}) {
      end += row_of(tuned(rows)).size() + 1;
      const std::string *row = file.find("x=" + std::to_string(rows));
      EXPECT_EQ(row != nullptr, bytes >= end) << bytes;
      if (row) {
        EXPECT_EQ(*row, row_of(tuned(rows)));
        ++kept;
      } else {
        file.add(tuned(rows));
      }
    }
    file.finish();
    EXPECT_EQ(content(), sorted) << bytes << " bytes, " << kept << " rows kept";
  }
}

TEST_F(TuningFileTest, WithoutResumeAFileThatIsThereIsRefused) {
  TuningFile(path_, false).finish();
  EXPECT_NE(refusal([&] { TuningFile(path_, false); }).find("--resume"), std::string::npos);
}

TEST_F(TuningFileTest, ARowTakesThePlaceOfTheCasesOldOne) {
  TunedCase changed = tuned(1);
  {
    TuningFile file(path_, false);
    file.add(changed);
    changed.first = "b";
    file.add(changed);
    EXPECT_EQ(*file.find("x=1"), row_of(changed));
    EXPECT_EQ(content().find(row_of(tuned(1))), 0u);  // until the end, or --resume
  }
  TuningFile file(path_, true);
  EXPECT_EQ(content(), row_of(changed) + "\n");
}

TEST_F(TuningFileTest, LinesThatAreNoRowsAreRefused) {
  for (const char *line :
       {"", "nonsense", "{", "[]", "{}", "{\"case\":1,\"origin\":\"\"}", "{\"case\":\"\"}"}) {
    write(std::string(line) + "\n");
    EXPECT_NE(refusal([&] { TuningFile(path_, true); }).find("is no tuning row"), std::string::npos)
        << line;
    EXPECT_EQ(content(), std::string(line) + "\n");
  }
}

TEST_F(TuningFileTest, FiguresOfAnotherOriginAreRefused) {
  TuningFile file(path_, false);
  file.add(tuned(1));
  const std::string text = refusal([&] { file.add(tuned(2, "hip:device")); });
  EXPECT_NE(text.find("holds figures of model:1"), std::string::npos) << text;
  EXPECT_NE(text.find("hip:device"), std::string::npos) << text;
  EXPECT_EQ(content(), row_of(tuned(1)) + "\n");
}

// A full disk, or here a limit of the process, that leaves room for half a row.
TEST_F(TuningFileTest, ARowThatIsNotWrittenWholeIsToldAndDroppedByResume) {
  TuningFile file(path_, false);
  file.add(tuned(1));
  const rlim_t room = content().size() + 10;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limited{room, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limited);
  const std::string text = refusal([&] { file.add(tuned(2)); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_NE(text.find("--out " + path_), std::string::npos) << text;
  EXPECT_EQ(content().size(), room);
  TuningFile again(path_, true);
  EXPECT_NE(again.find("x=1"), nullptr);
  EXPECT_EQ(again.find("x=2"), nullptr);
  EXPECT_EQ(content(), row_of(tuned(1)) + "\n");
}

TEST_F(TuningFileTest, RowsThatNoLongerHoldAreSeen) {
  const std::string row = row_of(tuned(1));
  const std::set<std::string> kernels = {"a", "b", "c"};
  EXPECT_TRUE(is_current(row, tuned(1), kernels));
  EXPECT_FALSE(is_current(row, tuned(1), {"a", "c"})) << "a kernel with a figure that is gone";
  TunedCase now = tuned(1);
  now.first = "b";
  EXPECT_FALSE(is_current(row, now, kernels)) << "another default";
  now = tuned(1);
  now.problem = "dtype=3 rows=1 keys=64 parallel=1 alignment=16 compute_units=256";
  EXPECT_FALSE(is_current(row, now, kernels)) << "another key";
  now.problem = "dtype=4 rows=1 keys=65 parallel=1 alignment=16 compute_units=256";
  EXPECT_FALSE(is_current(row, now, kernels)) << "another problem";
  now.problem = "dtype=4 more=0 rows=1 keys=64 parallel=1 alignment=16 compute_units=256";
  EXPECT_FALSE(is_current(row, now, kernels)) << "one more field of the key";
  now.problem = "dtype=4 rows=1 keys=64 parallel=1 alignment=16 compute_units=304";
  EXPECT_FALSE(is_current(row, now, kernels)) << "another device";
}

}  // namespace
}  // namespace flydsl::tools
