// A text line for each instruction that runs: FLYDSL_EMU_TRACE=file[,wg=x,y,z][,wave=n].
#pragma once

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

#include "emulator/isa/op.h"

namespace flydsl::emu {

struct Group;

struct TraceRequest {
  std::string file;  // empty: no trace
  std::optional<uint32_t> group[3];
  std::optional<uint32_t> wave;
};
// False when the text is not of that form.
bool parse_trace(const std::string &text, TraceRequest *request);

class Trace {
 public:
  // The process's trace, if the environment asks for one of this work-group; else null.
  static Trace *of(const Group &group);
  // Why the environment's request cannot be followed; empty when it can, or when there is none.
  static const std::string &error();

  bool wants(const Wave &wave) const {
    return !request_.wave || *request_.wave == wave.wave_in_group;
  }
  void write(const std::string &line);

 private:
  Trace();
  static Trace &instance();

  TraceRequest request_;
  std::string error_;
  std::mutex mutex_;
  std::FILE *out_ = nullptr;
};

// Around an instruction: what it changed.
class TraceStep {
 public:
  void before(const Wave &wave);
  void after(Trace &trace, const Wave &wave, const Op &op);

 private:
  uint32_t op_ = 0, scc_ = 0;
  uint32_t s_[128];
};

// The Hooks policy (step.h) that puts a trace around another one.
template <class Hooks>
struct TracedHooks {
  Hooks &inner;
  Trace &trace;
  TraceStep step = {};

  bool before(Wave &wave, const Op &op) {
    if (trace.wants(wave)) step.before(wave);
    return inner.before(wave, op);
  }
  void after(Wave &wave, const Op &op) {
    inner.after(wave, op);
    if (trace.wants(wave)) step.after(trace, wave, op);
  }
};

}  // namespace flydsl::emu
