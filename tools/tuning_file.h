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

// Whether the row says what is known about its problem now: key, problem, default, and kernels that can compute it.
bool is_current(const std::string &row, const TunedCase &now, const std::set<std::string> &kernels);

// A file that rows are added to. Each row is one write: what ends the command in between leaves whole rows.
class TuningFile {
 public:
  // Reads the rows that are there; a last line without its end is dropped. Without `resume` there must be no such file.
  TuningFile(const std::string &path, bool resume);

  // The case's row, null if there is none.
  const std::string *find(const std::string &case_text) const;
  // In place of the case's row if there is one. Refuses a figure of another origin than those of the rows that are there.
  void add(const TunedCase &tuned);
  // Sorted, as the archive's build wants it.
  void finish();

 private:
  std::string path_;
  std::map<std::string, std::string> rows_;  // by case
  std::string origin_;                       // of the rows; "": there are none
};

}  // namespace flydsl::tools
