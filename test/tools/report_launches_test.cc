// The reports of tools/report on a call of two made-up launches.
#include <gtest/gtest.h>

#include <fstream>

#include "test/tools/report_sample.h"
#include "tools/report/html.h"
#include "tools/report/launches.h"
#include "tools/report/listing.h"
#include "tools/report/roofline.h"
#include "tools/report/summary.h"
#include "tools/report/svg.h"

namespace flydsl::tools {
namespace {

// The sample's launch with a shorter one before it that has no matrix instructions.
std::vector<Json> two_launches() {
  std::vector<Json> launches(2, sample());
  for (Json &launch : launches) {
    for (const char *key : {"profile", "timeline", "timeline_truncated", "operator", "peers"})
      launch.erase(key);
    launch["l2_bytes"] = 8e9;
  }
  Json &first = launches[0];
  first["kernel"] = "first_kernel";
  first["seconds"] = 0.0005;
  first["clocks"] = 1250000;
  first["matrix_flops"] = first["tflops"] = first["share_of_peak"] = 0;
  first["peak"]["tflops"] = 157.0;
  first["hbm_bytes"] = 3e9;
  first["hbm_gb_per_s"] = 6000;
  first["l2_bytes"] = 2e9;
  first["l2_hit_rate"] = 0.4;
  first["lds_hypotheses"]["256"]["seconds"] = 0.0004;
  return launches;
}

TEST(ReportOfLaunches, SeveralLaunchesAreOneCall) {
  const std::vector<Json> launches = two_launches();
  ASSERT_EQ(longest_launch(launches), 1u);
  Json longest = launches[1];
  for (const char *key : {"profile", "timeline", "timeline_truncated"})
    longest[key] = sample()[key];
  const Json call = join_launches(launches, longest);
  const TimingReport report = parse_timing_report(call);
  EXPECT_DOUBLE_EQ(report.seconds, 0.0025);
  EXPECT_DOUBLE_EQ(report.clocks, 5250000);
  EXPECT_DOUBLE_EQ(report.clock_hz, 2.1e9);
  EXPECT_DOUBLE_EQ(report.tflops, 800);
  EXPECT_DOUBLE_EQ(report.share_of_peak, 0.32);
  EXPECT_DOUBLE_EQ(report.peak_tflops, 2500);
  EXPECT_DOUBLE_EQ(report.hbm_gb_per_s, 2800);
  EXPECT_DOUBLE_EQ(report.l2_hit_rate, 0.8);
  EXPECT_DOUBLE_EQ(report.lds_hypotheses.at(1).seconds, 0.002);
  EXPECT_DOUBLE_EQ(report.lds_hypotheses.at(1).tflops, 1000);
  EXPECT_EQ(report.kernel, "made_up_kernel");
  EXPECT_EQ(call["launches"], Json(launches));

  const std::string text = launches_text(report), which = "launch 2 of 2, the longest";
  EXPECT_TRUE(contains(line_with(text, "launches"), which)) << text;
  EXPECT_TRUE(contains(text, "\nlaunch 1   500.00 us modelled, first_kernel")) << text;
  EXPECT_TRUE(contains(text, "\nlaunch 2   2.000 ms modelled, made_up_kernel")) << text;
  EXPECT_TRUE(contains(annotated_listing(report), "; made_up_kernel, " + which));
  const std::string page = html_report(report);
  EXPECT_TRUE(contains(page, "<h1>first_kernel, made_up_kernel</h1>"));
  EXPECT_TRUE(contains(line_with(page, "<h2>Instructions"), "(made_up_kernel, " + which + ")"));
  EXPECT_TRUE(contains(page, text));
  const std::string picture = svg(roofline(report));
  EXPECT_TRUE(contains(picture, "this call: 800 TFLOP/s"));
  EXPECT_TRUE(contains(picture, "made_up_kernel and 1 more"));

  EXPECT_EQ(only_longest_launch(call), longest);
  Json none = call;
  none["longest_launch"] = 2;
  EXPECT_THROW(parse_timing_report(none), std::runtime_error);
}

TEST(ReportOfLaunches, PeersAreComparedWithTheWholeCall) {
  Json call = join_launches(two_launches(), two_launches()[1]);
  for (const char *key :
       {"operator", "backend", "data", "inputs", "settings", "problem_flops", "peers"})
    call[key] = sample()[key];
  call["problem_tflops"] = 640;  // 1.6e12 flops in 2.5 ms, as the peer
  const std::string text = peers_text(parse_timing_report(call));
  EXPECT_TRUE(contains(line_with(text, "flydsl_aot"), "2.500 ms")) << text;
  EXPECT_TRUE(contains(line_with(text, "flydsl_aot"), "first_kernel, made_up_kernel")) << text;
  EXPECT_TRUE(contains(line_with(text, "aiter"), "1.000  their_kernel")) << text;
}

TEST(ReportOfLaunches, OneLaunchStaysAsItIs) {
  EXPECT_EQ(join_launches({sample()}, sample()), sample());
  EXPECT_EQ(only_longest_launch(sample()), sample());
  const TimingReport report = parse_timing_report(sample());
  EXPECT_EQ(launches_text(report), "");
  EXPECT_EQ(which_launch(report), "");
}

}  // namespace
}  // namespace flydsl::tools
