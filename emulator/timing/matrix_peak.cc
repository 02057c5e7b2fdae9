#include "emulator/timing/matrix_peak.h"

#include <cstdio>
#include <string>

namespace flydsl::emu::timing {
namespace {

struct Rate {
  double flops = 0;  // of one instruction
  double peak = 1;   // FLOP a clock and compute unit
};

double peak_of(const std::string &inputs, const Op &op, const Constants &c) {
  const auto has = [&](const char *type) { return inputs.find(type) != std::string::npos; };
  if (has("f8f6f4"))
    return op.cbsz >= 2 && op.blgp >= 2 ? c.matrix_peak_4_bit : c.matrix_peak_8_bit;
  if (has("fp8") || has("bf8") || has("i8")) return c.matrix_peak_8_bit;
  if (has("f16")) return c.matrix_peak_16_bit;
  if (has("f64")) return c.matrix_peak_fp64;
  return c.matrix_peak_fp32;
}

Rate rate_of(const Program &program, uint32_t index, const Constants &constants) {
  const std::string text = program.text_of(index);
  const std::string mnemonic = text.substr(0, text.find(' '));
  const bool sparse = mnemonic.rfind("v_smfmac", 0) == 0;
  if (!sparse && mnemonic.rfind("v_mfma", 0) != 0) return {};
  const size_t first_by = mnemonic.find('x');
  size_t shape = first_by == std::string::npos ? std::string::npos : mnemonic.rfind('_', first_by);
  unsigned m = 0, n = 0, k = 0, blocks = 1;
  int used = 0;
  if (shape == std::string::npos ||
      std::sscanf(mnemonic.c_str() + shape, "_%ux%ux%u%n", &m, &n, &k, &used) != 3)
    return {};
  shape += size_t(used);
  if (std::sscanf(mnemonic.c_str() + shape, "_%ub", &blocks) != 1) blocks = 1;
  Rate rate;
  rate.flops = 2.0 * m * n * k * blocks;
  rate.peak = peak_of(mnemonic.substr(shape), program.ops[index], constants) * (sparse ? 2 : 1);
  return rate;
}

}  // namespace

double ideal_matrix_clocks(const Program &program, const GroupTrace &group,
                           const Constants &constants) {
  std::vector<uint64_t> count(program.ops.size());
  for (const WaveTrace &wave : group.waves)
    for (const uint32_t step : wave.steps) ++count[step & ~kNoLanes];
  double clocks = 0;
  for (uint32_t op = 0; op < count.size(); ++op)
    if (count[op]) {
      const Rate rate = rate_of(program, op, constants);
      clocks += double(count[op]) * rate.flops / rate.peak;
    }
  return clocks;
}

}  // namespace flydsl::emu::timing
