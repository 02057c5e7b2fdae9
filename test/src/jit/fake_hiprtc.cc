#include "test/src/jit/fake_hiprtc.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

using namespace flydsl::test;

void reset();
FakeHiprtc state{"fake 1", 0, 0, 0, 0, 0, 0, 0, 0, {}, {}, {}, {}, {}, reset};

void reset() {
  std::strcpy(state.compiler, "fake 1");
  state.compile_delay_us = state.create_error = state.compile_error = state.code_error = 0;
  state.compiles_before_error = 0;
  state.failing = state.nth = state.code = 0;
  for (auto &calls : state.calls) calls = 0;
  state.compilations = state.live_programs = state.headers = 0;
  state.options[0] = '\0';
}

// Counts a call; what it fails with, if it is to.
int injected(HiprtcCall call) {
  ++state.calls[call];
  return state.nth != 0 && state.failing == call && --state.nth == 0 ? state.code : 0;
}

struct Program {
  std::string source, code, log;
  int headers;
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT FakeHiprtc *fake_hiprtc() {
  return &state;
}
EXPORT const char *hiprtcGetErrorString(int code) {
  return code == 6 ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_ERROR_OTHER";
}
EXPORT int hiprtcVersion(int *major, int *minor) {
  *major = 9;
  *minor = 0;
  return injected(kHiprtcVersion);
}
EXPORT int hiprtcCreateProgram(Program **program, const char *source, const char *, int headers,
                               const char *const *, const char *const *) {
  if (const int code = injected(kHiprtcCreateProgram)) return code;
  if (state.create_error) return state.create_error;
  *program = new Program{source, {}, {}, headers};
  ++state.live_programs;
  return 0;
}
EXPORT int hiprtcDestroyProgram(Program **program) {
  delete *program;
  --state.live_programs;
  return 0;
}
EXPORT int hiprtcCompileProgram(Program *program, int count, const char *const *options) {
  if (const int code = injected(kHiprtcCompileProgram)) return code;
  if (program->source.find("__VERSION__") != std::string::npos) {
    program->code = "\177ELF flydsl-compiler:" + std::string(state.compiler);
    program->code += '\0';
    return 0;
  }
  ++state.compilations;
  state.headers = program->headers;
  std::string joined;
  for (int i = 0; i < count; ++i) joined.append(i ? " " : "").append(options[i]);
  std::snprintf(state.options, sizeof state.options, "%s", joined.c_str());
  if (state.compile_delay_us) usleep(static_cast<useconds_t>(state.compile_delay_us));
  if (state.compile_error && state.compiles_before_error-- <= 0) {
    program->log = "line 7: what it does not know";
    return state.compile_error;
  }
  program->code = "\177ELF of " + program->source;
  return 0;
}
EXPORT int hiprtcGetCodeSize(Program *program, size_t *bytes) {
  *bytes = program->code.size();
  if (const int code = injected(kHiprtcGetCodeSize)) return code;
  return state.code_error;
}
EXPORT int hiprtcGetCode(Program *program, char *code) {
  std::memcpy(code, program->code.data(), program->code.size());
  return injected(kHiprtcGetCode);
}
EXPORT int hiprtcGetProgramLogSize(Program *program, size_t *bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
EXPORT int hiprtcGetProgramLog(Program *program, char *log) {
  std::strcpy(log, program->log.c_str());
  return 0;
}
