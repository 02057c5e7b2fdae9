#include "emulator/isa/table.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

#include "emulator/engine/environment.h"

namespace flydsl::emu {
namespace {

struct Family {
  const char *name;
  const Row *rows[3];  // by level; null where the level is not built (FLYDSL_EMU_LEVELS)
};

#ifdef FLYDSL_EMU_HAS_base
#define FLYDSL_EMU_BASE(family) base::rows_##family
#else
#define FLYDSL_EMU_BASE(family) nullptr
#endif
#ifdef FLYDSL_EMU_HAS_avx2
#define FLYDSL_EMU_AVX2(family) avx2::rows_##family
#else
#define FLYDSL_EMU_AVX2(family) nullptr
#endif
#ifdef FLYDSL_EMU_HAS_avx512
#define FLYDSL_EMU_AVX512(family) avx512::rows_##family
#else
#define FLYDSL_EMU_AVX512(family) nullptr
#endif
#define FLYDSL_EMU_FAMILY(family) \
  {#family, {FLYDSL_EMU_BASE(family), FLYDSL_EMU_AVX2(family), FLYDSL_EMU_AVX512(family)}},
const Family kFamilies[] = {FLYDSL_EMU_FAMILIES(FLYDSL_EMU_FAMILY)};

bool is_integer(const char *name) {
  for (const char *n : {"salu", "control", "smem", "valu_int", "valu_int16", "valu_int64",
                        "valu_byte", "smem_write", "lane", "lds", "global", "buffer"})
    if (!std::strcmp(n, name)) return true;
  return false;
}

using Table = std::unordered_map<std::string_view, Found>;

Table build(Level level) {
  Table table;
  for (const Family &family : kFamilies)
    for (const Row *row = family.rows[int(level)]; row && row->name; ++row)
      table.emplace(row->name, Found{row, is_integer(family.name)});
  return table;
}

}  // namespace

bool level_supported(Level level) {
  if (!kFamilies[0].rows[int(level)]) return false;
  switch (level) {
    case Level::kBase:
      return true;
    case Level::kAvx2:
      return __builtin_cpu_supports("x86-64-v3");
    case Level::kAvx512:
      return __builtin_cpu_supports("x86-64-v4");
  }
  return false;
}

Level host_level() {
  static const Level level = [] {
    Level best = level_supported(Level::kAvx512) ? Level::kAvx512
                 : level_supported(Level::kAvx2) ? Level::kAvx2
                                                 : Level::kBase;
    if (const char *name = std::getenv("FLYDSL_EMU_ISA")) {
      const std::string_view asked = name;
      const struct {
        const char *name;
        Level level;
      } levels[] = {{"base", Level::kBase}, {"avx2", Level::kAvx2}, {"avx512", Level::kAvx512}};
      bool found = asked.empty();
      std::string allowed;
      for (const auto &candidate : levels) {
        if (!level_supported(candidate.level)) continue;
        allowed += (allowed.empty() ? "" : ", ") + std::string(candidate.name);
        if (asked != candidate.name) continue;
        best = candidate.level;
        found = true;
      }
      if (!found) complain_of("FLYDSL_EMU_ISA", name, allowed + " on this processor");
    }
    return best;
  }();
  return level;
}

Found find_row(Level level, std::string_view mnemonic) {
  static const Table tables[3] = {build(Level::kBase), build(Level::kAvx2), build(Level::kAvx512)};
  const Table &table = tables[int(level)];
  const auto it = table.find(mnemonic);
  return it == table.end() ? Found{} : it->second;
}

}  // namespace flydsl::emu
