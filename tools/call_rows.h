// The file of rows that FLYDSL_AOT_VERBOSE writes (flydsl_aot/library.h), row by row.
#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace flydsl::tools {

struct CallRow {
  std::string where;  // "--replay FILE line 3", for messages
  size_t line;        // its first, from 1
  std::string op, problem, kernels;
};

class CallRows {
 public:
  // Throws ToolError, as next() does: a file that is not there, or one without read permission.
  explicit CallRows(const std::string &file);
  // The next row; false after the last. Rows of other columns, of too few or too many, and one that the file's end cuts off are
  // errors.
  bool next(CallRow *row);

 private:
  bool read_record(std::string *record);
  std::string where() const;

  std::string file_;
  std::ifstream stream_;
  size_t line_ = 0, next_line_ = 1;  // of the record read last, of the one after it
  bool cut_off_ = false;             // the file ends without an end of the record
};

}  // namespace flydsl::tools
