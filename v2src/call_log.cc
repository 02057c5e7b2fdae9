#include "v2src/call_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

#include "src/log/log.h"

namespace flydsl {
namespace {

constexpr const char *kHeader = "time,operator,problem,kernel,backend,archive,tuning row,host ns\n";

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// "2026-01-31T23:59:59.999999Z"
std::string time_text() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char seconds[32];
  std::strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
  return text("%s.%06ldZ", seconds, now.tv_nsec / 1000);
}

// A field of a CSV row (RFC 4180).
std::string quoted(const std::string &field) {
  if (field.find_first_of(",\"\n\r") == std::string::npos) return field;
  std::string result = "\"";
  for (const char c : field) result.append(c == '"' ? 2 : 1, c);
  return result + '"';
}

std::string joined(const int64_t *numbers, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result.append(i ? "x" : "").append(std::to_string(numbers[i]));
  return result;
}

// At once, so that rows of several threads and processes stay apart.
void put(int descriptor, const std::string &row) {
  write_at_once(descriptor, row.data(), row.size());
}

}  // namespace

thread_local CallLog::Recording *CallLog::current_ = nullptr;

void CallText::add(const char *member, const std::string &value) {
  if (!text_.empty()) text_ += ' ';
  text_.append(member).append("=").append(value);
}

void CallText::tensor(const char *member, const flydsl_aot_tensor &tensor) {
  if (tensor.rank == 0) return;
  constexpr uint64_t kMostAlignment = 256;
  const auto address = reinterpret_cast<uint64_t>(tensor.data);
  const uint64_t alignment = (address | kMostAlignment) & -(address | kMostAlignment);
  std::string value = std::string(flydsl_aot_dtype_name(tensor.dtype)) + ":" +
                      joined(tensor.sizes, tensor.rank) + ":" +
                      joined(tensor.strides, tensor.rank) + ":" + std::to_string(alignment);
  const auto same = std::find_if(addresses_.begin(), addresses_.end(),
                                 [&](const auto &before) { return before.second == tensor.data; });
  if (tensor.data && same != addresses_.end()) value.append("@").append(same->first);
  addresses_.emplace_back(member, tensor.data);
  add(member, value);
}

void CallText::number(const char *member, float value) {
  if (value == 0) return;
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  add(member, std::string(digits, end));
}

void CallText::pointer(const char *member, const void *value) {
  if (value) add(member, "device");
}

CallLog::Recording::Recording() : begin_ns(now_ns()), before_(current_) {
  current_ = this;
}
CallLog::Recording::~Recording() {
  current_ = before_;
}
void CallLog::Recording::stop() {
  host_ns = now_ns() - begin_ns;
}

Status CallLog::open(const char *where, std::unique_ptr<CallLog> *log) {
  int descriptor = -1;
  if (std::strcmp(where, "stderr") == 0) {
    descriptor = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  } else {
    // O_NONBLOCK: a FIFO without a reader must not block.
    descriptor =
        ::open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  }
  if (descriptor < 0) {
    char reason[128];
    return error(
        FLYDSL_AOT_INVALID_ARGUMENT,
        "FLYDSL_AOT_VERBOSE is '%.256s', which cannot be written: %s; allowed: stderr, or a file",
        where, strerror_r(errno, reason, sizeof reason));
  }
  log->reset(new CallLog(descriptor));
  struct stat info {};
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
    put(descriptor, kHeader);
  return {};
}

CallLog::~CallLog() {
  close(descriptor_);
}

void CallLog::note(uint32_t entry, const std::string &tuning_row) {
  if (!current_) return;
  if (current_->entries.empty()) current_->tuning_row = tuning_row;
  current_->entries.push_back(entry);
}

void CallLog::write(const archive::Archive &archive, const char *op, const std::string &problem,
                    const Recording &recording) const {
  std::string kernels, backend;
  for (const uint32_t index : recording.entries) {
    const archive::Entry &entry = archive.entries()[index];
    kernels.append(kernels.empty() ? "" : "+").append(archive.string(entry.name));
    if (backend.empty()) backend = archive.string(entry.backend);
  }
  std::string row = time_text();
  for (const std::string &field : {std::string(op), problem, kernels, backend, archive.path(),
                                   recording.tuning_row, std::to_string(recording.host_ns)})
    row.append(",").append(quoted(field));
  put(descriptor_, row + "\n");
}

}  // namespace flydsl
