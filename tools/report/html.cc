#include "tools/report/html.h"

#include <algorithm>

#include "tools/report/format.h"
#include "tools/report/launches.h"
#include "tools/report/listing.h"
#include "tools/report/roofline.h"
#include "tools/report/summary.h"
#include "tools/report/svg.h"

namespace flydsl::tools {
namespace {

constexpr const char *kStyle = R"(
body { font: 14px/1.45 sans-serif; margin: 2em auto; max-width: 1180px; padding: 0 1em; color: #222; background: #fff; }
h1 { font-size: 1.4em; margin-bottom: 0; } h2 { font-size: 1.1em; margin-top: 2em; }
table { border-collapse: collapse; } td, th { padding: 1px 10px 1px 0; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; } .label { background: #fff3cd; padding: 4px 8px; display: inline-block; }
.bar { display: inline-block; height: 12px; background: #1f4e8c; vertical-align: middle; }
pre { background: #f6f6f6; padding: 8px; white-space: pre-wrap; }
.code { font: 12px/1.35 monospace; } .code td { white-space: pre; } .source td { color: #777; padding-top: 6px; }
)";

std::string bars(const NamedValues &values) {
  std::string text = "<table>\n";
  for (const auto &[name, share] : values) {
    text += format(
        "<tr><td>%s</td><td class=\"n\">%s</td><td><span class=\"bar\" "
        "style=\"width:%.0fpx\"></span></td></tr>\n",
        escape_markup(name).c_str(), percent(share).c_str(), std::clamp(share, 0.0, 1.0) * 400);
  }
  return text + "</table>\n";
}

std::string peers_table(const TimingReport &report) {
  std::string text =
      "<table>\n<tr><th></th><th class=\"n\">time</th><th class=\"n\">TFLOP/s of the problem</th>"
      "<th class=\"n\">ours/theirs</th><th>kernel</th></tr>\n";
  const auto row = [&](const std::string &name, const std::string &time, const std::string &speed,
                       const std::string &ratio, const std::string &kernel) {
    text += "<tr><td>" + escape_markup(name) + "</td><td class=\"n\">" + time +
            "</td><td class=\"n\">" + speed + "</td><td class=\"n\">" + ratio + "</td><td>" +
            escape_markup(kernel) + "</td></tr>\n";
  };
  row("flydsl_aot", duration(report.seconds), format("%.1f", report.problem_tflops), "1.000",
      kernel_names(report));
  for (const PeerReport &peer : report.peers) {
    if (!peer.refused.empty()) {
      row(peer.peer, "-", "-", "-", peer.refused);
    } else {
      row(peer.peer, duration(peer.seconds), format("%.1f", peer.problem_tflops),
          format("%.3f", report.problem_tflops / peer.problem_tflops), peer.kernel);
    }
  }
  return text + "</table>\n";
}

std::string listing_table(const TimingReport &report) {
  const double total = total_stall_clocks(report);
  double most = 0;
  for (const ProfiledOperation &operation : report.profile)
    most = std::max(most, operation.stall_clocks);
  std::string text =
      "<table class=\"code\">\n<tr><th class=\"n\">issued</th><th class=\"n\">stall clocks</th><th "
      "class=\"n\">share</th><th>offset</th><th>instruction</th><th>waiting for</th></tr>\n";
  std::string source;
  for (const ProfiledOperation &operation : report.profile) {
    if (!operation.source.empty() && operation.source != source) {
      source = operation.source;
      text += "<tr class=\"source\"><td colspan=\"6\">" + escape_markup(source) + "</td></tr>\n";
    }
    // Red as the share of the worst instruction.
    const int paleness = 255 - static_cast<int>(most > 0 ? 110 * operation.stall_clocks / most : 0);
    text += format(
        "<tr style=\"background:#ff%02x%02x\"><td class=\"n\">%llu</td><td "
        "class=\"n\">%.0f</td><td class=\"n\">%s</td><td>%llx</td><td>%s</td>"
        "<td>%s</td></tr>\n",
        paleness, paleness, static_cast<unsigned long long>(operation.issued),
        operation.stall_clocks, total > 0 ? percent(operation.stall_clocks / total).c_str() : "-",
        static_cast<unsigned long long>(operation.offset), escape_markup(operation.text).c_str(),
        escape_markup(stall_reasons(operation)).c_str());
  }
  return text + "</table>\n";
}

}  // namespace

std::string html_report(const TimingReport &report) {
  const std::string title = escape_markup(kernel_names(report));
  const std::string which = which_launch(report);
  const std::string of_launch =
      which.empty() ? "" : " (" + escape_markup(report.kernel + ", " + which) + ")";
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>modelled: " +
      title + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" + title +
      "</h1>\n<p class=\"label\">" + escape_markup(provenance(report)) + "</p>\n";
  page += "<pre>" + escape_markup(summary_text(report) + launches_text(report)) + "</pre>\n";
  if (!report.peers.empty())
    page += "<h2>Others on the same problem, modelled</h2>\n" + peers_table(report);
  page += "<h2>Busy, share of the time of a working compute unit, modelled" + of_launch +
          "</h2>\n" + bars(report.utilisation);
  page += "<h2>Why waves did not issue, share of wave-slots, modelled" + of_launch + "</h2>\n" +
          bars(report.stalls);
  page += "<h2>Roofline, modelled</h2>\n" + svg(roofline(report));
  if (!report.profile.empty()) {
    page += "<h2>Instructions, one compute unit, modelled" + of_launch + "</h2>\n" +
            listing_table(report);
  }
  return page + "</body>\n</html>\n";
}

}  // namespace flydsl::tools
