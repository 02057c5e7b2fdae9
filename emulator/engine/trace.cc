#include "emulator/engine/trace.h"

#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "emulator/engine/memory.h"

namespace flydsl::emu {
namespace {

constexpr uint32_t kScalarRegisters = 128;

bool number(const std::string &text, std::optional<uint32_t> *value) {
  char *end = nullptr;
  const unsigned long long n = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || text[0] < '0' || text[0] > '9' || *end != 0 || n > UINT32_MAX) return false;
  *value = static_cast<uint32_t>(n);
  return true;
}

[[gnu::format(printf, 2, 3)]] void append(std::string *line, const char *format, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  *line += text;
}

std::string scalar_name(uint32_t index) {
  switch (index) {
    case kVcc:
      return "vcc_lo";
    case kVcc + 1:
      return "vcc_hi";
    case kM0:
      return "m0";
    case kExec:
      return "exec_lo";
    case kExec + 1:
      return "exec_hi";
  }
  std::string name = std::to_string(index);
  name.insert(name.begin(), 's');
  return name;
}

// One value if all lanes agree, else all 64.
void append_vector(std::string *line, const Wave &wave, uint32_t row) {
  const uint32_t *lanes = wave.v + size_t(row) * 64;
  append(line, " %s%u=", row < 256 ? "v" : "a", row & 255);
  bool equal = true;
  for (int lane = 1; lane < 64; ++lane) equal = equal && lanes[lane] == lanes[0];
  if (equal) {
    append(line, "%08x", lanes[0]);
    return;
  }
  for (int lane = 0; lane < 64; ++lane) append(line, "%c%08x", lane ? ',' : '[', lanes[lane]);
  *line += ']';
}

}  // namespace

bool parse_trace(const std::string &text, TraceRequest *request) {
  std::vector<std::string> words;
  size_t begin = 0;
  for (size_t comma; (comma = text.find(',', begin)) != std::string::npos; begin = comma + 1)
    words.push_back(text.substr(begin, comma - begin));
  words.push_back(text.substr(begin));
  request->file = words[0];
  if (request->file.empty()) return false;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].rfind("wave=", 0) == 0) {
      if (!number(words[i].substr(5), &request->wave)) return false;
    } else if (words[i].rfind("wg=", 0) == 0 && i + 2 < words.size()) {
      if (!number(words[i].substr(3), &request->group[0]) ||
          !number(words[i + 1], &request->group[1]) || !number(words[i + 2], &request->group[2]))
        return false;
      i += 2;
    } else {
      return false;
    }
  }
  return true;
}

Trace::Trace() {
  const char *text = std::getenv("FLYDSL_EMU_TRACE");
  if (text == nullptr || *text == 0) return;
  if (!parse_trace(text, &request_)) {
    error_ = "FLYDSL_EMU_TRACE is \"" + std::string(text) + "\", expected file[,wg=x,y,z][,wave=n]";
    return;
  }
  out_ = std::fopen(request_.file.c_str(), "we");
  if (out_ == nullptr) error_ = "FLYDSL_EMU_TRACE: " + request_.file + ": " + std::strerror(errno);
}

Trace &Trace::instance() {
  static auto *const trace = new Trace;  // never destroyed: launches may outlive static objects
  return *trace;
}

const std::string &Trace::error() {
  return instance().error_;
}

Trace *Trace::of(const Group &group) {
  Trace &trace = instance();
  if (trace.out_ == nullptr) return nullptr;
  for (int axis = 0; axis < 3; ++axis)
    if (trace.request_.group[axis] && *trace.request_.group[axis] != group.id[axis]) return nullptr;
  return &trace;
}

void Trace::write(const std::string &line) {
  std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);  // a crash loses nothing
}

void TraceStep::before(const Wave &wave) {
  op_ = wave.pc - 1;  // already past it
  scc_ = wave.scc;
  std::memcpy(s_, wave.s, sizeof s_);
}

void TraceStep::after(Trace &trace, const Wave &wave, const Op &op) {
  const Group &group = *wave.memory->group;
  std::string line = group.kernel->name;
  append(&line, " (%u,%u,%u).%u ", group.id[0], group.id[1], group.id[2], wave.wave_in_group);
  line += offset_and_line(*group.program, op_);
  append(&line, " exec=%016" PRIx64 " ", s_[kExec] | uint64_t(s_[kExec + 1]) << 32);
  line += group.program->text_of(op_) + " ;";
  for (int n = 0; n < op.first_source; ++n) {
    const Operand &o = op.o[n];
    if (o.kind != Kind::kVector) continue;
    for (uint32_t word = 0; word < o.words; ++word) append_vector(&line, wave, o.index + word);
  }
  for (uint32_t i = 0; i < kScalarRegisters; ++i)
    if (wave.s[i] != s_[i]) append(&line, " %s=%08x", scalar_name(i).c_str(), wave.s[i]);
  if (wave.scc != scc_) append(&line, " scc=%u", wave.scc);
  line += '\n';
  trace.write(line);
}

}  // namespace flydsl::emu
