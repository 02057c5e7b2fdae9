// A file of cases: one a line, '#' begins a comment.
#pragma once

#include <string>
#include <vector>

namespace flydsl::verify {

// The lines that hold cases, without comments. `origin` names the file in errors. Throws CaseError if a name
// comes twice.
std::vector<std::string> case_lines(const std::string &origin, const std::string &content);

// Those whose name begins with `suite` and "_" and matches `pattern`, a regular expression, somewhere;
// "" matches all.
std::vector<std::string> select_cases(const std::vector<std::string> &lines,
                                      const std::string &suite, const std::string &pattern);

}  // namespace flydsl::verify
