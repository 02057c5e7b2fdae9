// The frame itself, as a file of the build.
#include "src/jit/sources.h"

extern "C" const unsigned char flydsl_jit_sources[], flydsl_jit_sources_end[];
asm(".pushsection .rodata\n"
    ".balign 8\n"
    ".hidden flydsl_jit_sources\n"
    ".hidden flydsl_jit_sources_end\n"
    ".global flydsl_jit_sources\n"
    ".global flydsl_jit_sources_end\n"
    "flydsl_jit_sources:\n"
    ".incbin \"" FLYDSL_JIT_SOURCES "\"\n"
    "flydsl_jit_sources_end:\n"
    ".popsection\n");

namespace flydsl::jit {

std::span<const unsigned char> embedded_sources() {
  return {flydsl_jit_sources, flydsl_jit_sources_end};
}

}  // namespace flydsl::jit
