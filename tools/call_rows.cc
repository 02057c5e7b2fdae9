#include "tools/call_rows.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

constexpr const char *kHeader = "time,operator,problem,kernel,backend,archive,tuning row,host ns";
constexpr size_t kColumns = 8, kTime = 0, kOperator = 1, kProblem = 2, kKernel = 3, kHostNs = 7;
// Of any row that a call can have; more is another kind of file.
constexpr size_t kMostRecordBytes = size_t{1} << 20;

// The fields of a CSV record (RFC 4180) without its end; none if a quote stays open, which only the file's end leaves so.
std::vector<std::string> fields_of(const std::string &record) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < record.size(); ++i) {
    const char c = record[i];
    if (quoted && c == '"' && i + 1 < record.size() && record[i + 1] == '"') {
      fields.back() += record[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return quoted ? std::vector<std::string>() : fields;
}

bool is_number(const std::string &text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

CallRows::CallRows(const std::string &file) : file_(file), stream_(file, std::ios::binary) {
  if (!stream_) bad_input("--replay " + file + ": " + std::strerror(errno));
  if (std::filesystem::is_directory(file)) bad_input("--replay " + file + ": is a directory");
}

std::string CallRows::where() const {
  return "--replay " + file_ + " line " + std::to_string(line_);
}

// Up to an end of line that no quotes are round: the path of an archive may hold one.
bool CallRows::read_record(std::string *record) {
  record->clear();
  line_ = next_line_;
  bool quoted = false;
  for (int c = stream_.get(); c != std::ifstream::traits_type::eof(); c = stream_.get()) {
    next_line_ += c == '\n';
    if (c == '\n' && !quoted) return true;
    quoted = quoted != (c == '"');
    record->push_back(static_cast<char>(c));
    if (record->size() > kMostRecordBytes)
      bad_input(where() + ": no row is so long; is this a file that FLYDSL_AOT_VERBOSE wrote?");
  }
  if (stream_.bad()) bad_input("--replay " + file_ + ": cannot be read");
  cut_off_ = !record->empty();
  return cut_off_;
}

bool CallRows::next(CallRow *row) {
  for (std::string record; read_record(&record);) {
    if (!record.empty() && record.back() == '\r') record.pop_back();
    if (record.empty() || record == kHeader) continue;
    const std::vector<std::string> fields = fields_of(record);
    const bool complete = fields.size() == kColumns && is_number(fields[kHostNs]);
    if (!fields.empty() && fields[kTime] == "time" && !(cut_off_ && fields.size() < kColumns))
      bad_input(where() + ": rows of another version, with the columns " + record +
                "; this one reads " + kHeader);
    if (cut_off_ && !complete)
      bad_input(where() + ": the file ends within this row, which was not written to its end");
    if (fields.size() != kColumns)
      bad_input(where() + ": " + std::to_string(fields.size()) + " fields; a row has the 8 of " +
                kHeader);
    if (!complete)
      bad_input(where() + ": host ns is '" + fields[kHostNs] + "'; it must be a number");
    *row = {where(), line_, fields[kOperator], fields[kProblem], fields[kKernel]};
    return true;
  }
  return false;
}

}  // namespace flydsl::tools
