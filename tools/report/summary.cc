#include "tools/report/summary.h"

#include "tools/report/format.h"
#include "tools/report/launches.h"

namespace flydsl::tools {
namespace {

std::string shares(const NamedValues &values, size_t limit) {
  std::string text;
  for (size_t i = 0; i < values.size() && i < limit; ++i)
    text += (i ? ", " : "") + values[i].first + " " + percent(values[i].second);
  return text.empty() ? "none" : text;
}

std::string extent(const uint64_t (&size)[3]) {
  return format("%llu x %llu x %llu", static_cast<unsigned long long>(size[0]),
                static_cast<unsigned long long>(size[1]), static_cast<unsigned long long>(size[2]));
}

}  // namespace

std::string provenance(const TimingReport &report) {
  return "modelled on " + report.arch + ", constants " + report.constants_hash +
         ": no GPU was asked";
}

std::string summary_text(const TimingReport &report) {
  std::string text;
  const auto line = [&](const char *name, const std::string &value) {
    text += format("%-11s%s\n", name, value.c_str());
  };
  if (!report.op.empty()) {
    line("operator", report.op);
    for (const auto &[name, shape] : report.inputs) line("input", name + " " + shape);
    for (const std::string &setting : report.settings) line("setting", setting);
    line("data", report.data);
    line("backend", report.backend);
  }
  line("kernel", report.kernel);
  line("launch", extent(report.grid) + " work-groups of " + extent(report.block) + " work-items");
  line("time", duration(report.seconds) + format(" modelled, %.0f clocks at %.3f GHz",
                                                 report.clocks, report.clock_hz * 1e-9));
  if (report.problem_flops > 0) {
    line("speed", format("%.1f TFLOP/s modelled, of the problem's %.4g flops",
                         report.problem_tflops, report.problem_flops));
  }
  line("matrix",
       format("%.1f TFLOP/s modelled, %s of the peak of %.0f, %.4g flops executed", report.tflops,
              percent(report.share_of_peak).c_str(), report.peak_tflops, report.matrix_flops));
  line("memory",
       format("%.1f GB/s of HBM modelled, %.4g bytes, L2 hit rate %s", report.hbm_gb_per_s,
              report.hbm_bytes, percent(report.l2_hit_rate).c_str()));
  line("busy", shares(report.utilisation, report.utilisation.size()));
  line("idle", percent(report.idle) + " of the compute units' time (start, tail)");
  line("occupancy", format("%llu work-groups a compute unit, %llu waves a SIMD, limited by %s",
                           static_cast<unsigned long long>(report.groups_per_compute_unit),
                           static_cast<unsigned long long>(report.waves_per_simd),
                           report.occupancy_limit.c_str()));
  line("waiting", shares(report.stalls, 6));
  for (const LdsHypothesis &hypothesis : report.lds_hypotheses) {
    line("if LDS", format("moved %s bytes a clock: %s, matrix %.1f TFLOP/s",
                          hypothesis.bytes_per_clock.c_str(), duration(hypothesis.seconds).c_str(),
                          hypothesis.tflops));
  }
  if (!report.lds_hypotheses.empty())
    line("", "each with the clock fitted for it, so that 256 can be slower than 128");
  line("simulated", report.extrapolation);
  line("label", provenance(report));
  return text;
}

std::string peers_text(const TimingReport &report) {
  if (report.peers.empty()) return "";
  std::string text = format("\n%-12s %12s %12s %12s  %s\n", "modelled", "time", "TFLOP/s",
                            "ours/theirs", "kernel");
  text += format("%-12s %12s %12.1f %12s  %s\n", "flydsl_aot", duration(report.seconds).c_str(),
                 report.problem_tflops, "1.000", kernel_names(report).c_str());
  for (const PeerReport &peer : report.peers) {
    if (!peer.refused.empty()) {
      text += format("%-12s %12s %12s %12s  %s\n", peer.peer.c_str(), "-", "-", "-",
                     peer.refused.c_str());
      continue;
    }
    text += format("%-12s %12s %12.1f %12.3f  %s\n", peer.peer.c_str(),
                   duration(peer.seconds).c_str(), peer.problem_tflops,
                   report.problem_tflops / peer.problem_tflops, peer.kernel.c_str());
  }
  text += "ours/theirs: ratio of speeds, above 1 ours is faster. " + provenance(report) + "\n";
  return text;
}

}  // namespace flydsl::tools
