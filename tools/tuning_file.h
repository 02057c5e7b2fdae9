// Rows of tuning/<arch>/<operator>.jsonl (tuning/README.md) as they are made.
#pragma once

#include <map>
#include <set>
#include <string>

namespace flydsl::tools {

// What was found out about one problem.
struct TunedCase {
  std::string text;                       // the case, as its file has it
  std::string problem;                    // flydsl_aot_candidate's
  std::string first;                      // the kernel that is taken without tuning
  std::map<std::string, double> figures;  // microseconds by kernel
  std::string origin;
};

// The row, one line of JSON with its members in alphabetical order, so that lines sort by bytes.
std::string row_of(const TunedCase &tuned);

// A file that rows are added to. Each row is one write: what ends the command in between leaves whole rows.
class TuningFile {
 public:
  // Reads the rows that are there; a last line without its end is dropped. Without `resume` there must be no such file.
  TuningFile(const std::string &path, bool resume);

  bool has(const std::string &case_text) const { return cases_.count(case_text) != 0; }
  void add(const std::string &row);
  // Sorted, as the archive's build wants it.
  void finish();

 private:
  std::string path_;
  std::set<std::string> rows_;
  std::set<std::string> cases_;
};

}  // namespace flydsl::tools
