// The reports of tools/report on a made-up launch whose figures are known.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "test/tools/report_sample.h"
#include "tools/report/chrome_trace.h"
#include "tools/report/html.h"
#include "tools/report/listing.h"
#include "tools/report/png.h"
#include "tools/report/roofline.h"
#include "tools/report/summary.h"
#include "tools/report/svg.h"

namespace flydsl::tools {
namespace {

TEST(Report, EveryKeyIsNeededAndNamedWhenItIsMissingOrOfAnotherType) {
  ASSERT_NO_THROW(parse_timing_report(sample()));
  for (const auto &[key, value] : sample().items()) {
    if (key == "operator" || key == "peers" || key == "profile" || key == "timeline_truncated")
      continue;  // what may be absent
    Json without = sample(), wrong = sample();
    without.erase(key);
    wrong[key] = nullptr;
    for (const Json &damaged : {without, wrong}) {
      try {
        parse_timing_report(damaged);
        ADD_FAILURE() << key;
      } catch (const std::exception &error) {
        if (key != "modelled") {
          EXPECT_TRUE(contains(error.what(), key)) << error.what();
        }
      }
    }
  }
  Json not_modelled = sample();
  not_modelled["modelled"] = false;
  EXPECT_THROW(parse_timing_report(not_modelled), std::runtime_error);
  Json stray = sample();
  stray["timeline"][0]["op"] = 5;
  EXPECT_THROW(parse_timing_report(stray), std::runtime_error);
  Json backwards = sample();
  backwards["timeline"][0]["end"] = -1;
  EXPECT_THROW(parse_timing_report(backwards), std::runtime_error);
}

TEST(Report, SummaryAndPeers) {
  const TimingReport report = parse_timing_report(sample());
  const std::string text = summary_text(report);
  EXPECT_TRUE(contains(line_with(text, "time "), "2.000 ms modelled, 4000000 clocks at 2.000 GHz"));
  EXPECT_TRUE(contains(line_with(text, "speed"), "800.0 TFLOP/s modelled"));
  EXPECT_TRUE(contains(line_with(text, "matrix "), "1000.0 TFLOP/s modelled, 40.0 % of the peak"));
  EXPECT_TRUE(contains(line_with(text, "waiting"), "dependency 20.0 %, barrier 10.0 %, lds 5.0 %"));
  EXPECT_TRUE(contains(line_with(text, "occupancy"), "2 work-groups"));
  EXPECT_TRUE(contains(line_with(text, "256 bytes a clock"), "1.600 ms, matrix 1250.0 TFLOP/s"));
  const std::string why = "each with the clock fitted for it, so that 256 can be slower than 128";
  EXPECT_TRUE(contains(text, why));
  EXPECT_TRUE(contains(html_report(report), why));
  Json without = sample();
  without["lds_hypotheses"] = Json::object();
  EXPECT_FALSE(contains(summary_text(parse_timing_report(without)), why));
  EXPECT_TRUE(contains(text, "constants 0123456789abcdef"));
  const std::string peers = peers_text(report);
  EXPECT_TRUE(contains(line_with(peers, "aiter"), "1.250")) << peers;
  EXPECT_TRUE(contains(line_with(peers, "triton"), "not for this head dim")) << peers;
  EXPECT_TRUE(contains(peers, "modelled"));
  EXPECT_TRUE(contains(peers, "0123456789abcdef"));
}

TEST(Report, Listing) {
  const TimingReport report = parse_timing_report(sample());
  EXPECT_EQ(total_stall_clocks(report), 200);
  const std::string text = annotated_listing(report);
  const std::string matrix = line_with(text, "v_mfma");
  for (const char *part : {"32 ", "120 ", "60.0 %", "00000008", "lds 75 %, dependency 25 %"})
    EXPECT_TRUE(contains(matrix, part)) << matrix;
  // A source line stands once above its instructions.
  EXPECT_EQ(text.find("more>.h:7"), text.rfind("more>.h:7"));
  EXPECT_LT(text.find("more>.h:7"), text.find("s_load_dwordx4"));
  EXPECT_TRUE(contains(line_with(text, "0123456789abcdef"), "modelled"));
  EXPECT_FALSE(contains(text, "no source lines"));
  Json without = sample();
  for (Json &operation : without["profile"]) operation["source"] = "";
  EXPECT_TRUE(contains(annotated_listing(parse_timing_report(without)), "no source lines"));
}

TEST(Report, RooflinePlacesThePoints) {
  const TimingReport report = parse_timing_report(sample());
  const Drawing drawing = roofline(report);
  // The matrix roof is the only horizontal line of width 2, the ridge where it begins.
  const auto roof = std::find_if(drawing.lines.begin(), drawing.lines.end(), [](const Line &line) {
    return line.width == 2 && line.y1 == line.y2;
  });
  const auto slope = std::find_if(drawing.lines.begin(), drawing.lines.end(), [](const Line &line) {
    return line.width == 2 && line.y1 != line.y2;
  });
  ASSERT_NE(roof, drawing.lines.end());
  ASSERT_NE(slope, drawing.lines.end());
  EXPECT_DOUBLE_EQ(slope->x2, roof->x1);
  EXPECT_DOUBLE_EQ(slope->y2, roof->y1);
  // Decades on both axes, from the grid: x 10 to 10000 and y 100 to 10000 hold all points here.
  const auto decade = [&](double Line::*from, double Line::*to) {
    std::vector<double> places;
    for (const Line &line : drawing.lines)
      if (line.width == 1 && line.*from == line.*to) places.push_back(line.*from);
    return places.at(1) - places.at(0);
  };
  const double decade_x = decade(&Line::x1, &Line::x2), decade_y = decade(&Line::y1, &Line::y2);
  // The launch: 500 flops a byte, 1000 TFLOP/s; the ridge: 312.5 flops a byte, 2500 TFLOP/s.
  const double x = roof->x1 + decade_x * std::log10(500 / 312.5);
  const double y = roof->y1 + decade_y * std::log10(1000 / 2500.0);
  EXPECT_TRUE(
      std::any_of(drawing.circles.begin(), drawing.circles.end(), [&](const Circle &circle) {
        return circle.filled && std::abs(circle.x - x) < 1e-6 && std::abs(circle.y - y) < 1e-6;
      }));
  // Everything lies inside the picture.
  for (const Line &line : drawing.lines) {
    EXPECT_TRUE(line.x1 >= 0 && line.x2 <= drawing.width && line.y1 >= 0);
    EXPECT_LE(std::max(line.y1, line.y2), drawing.height);
  }
  EXPECT_TRUE(contains(svg(drawing), "modelled on gfx950, constants 0123456789abcdef"));
}

TEST(Report, ALaunchWithoutHbmTrafficStandsAtTheRightEnd) {
  Json json = sample();
  json["hbm_bytes"] = 0;
  const Drawing drawing = roofline(parse_timing_report(json));
  double right = 0;
  for (const Line &line : drawing.lines) right = std::max(right, line.x2);
  EXPECT_TRUE(std::any_of(drawing.circles.begin(), drawing.circles.end(),
                          [&](const Circle &circle) { return circle.x == right; }));
}

TEST(Report, Png) {
  const Drawing drawing = roofline(parse_timing_report(sample()));
  const std::string bytes = png(drawing, 1);
  ASSERT_GT(bytes.size(), 1000u);
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  const auto word = [&](size_t at) {
    return uint32_t(uint8_t(bytes[at])) << 24 | uint32_t(uint8_t(bytes[at + 1])) << 16 |
           uint32_t(uint8_t(bytes[at + 2])) << 8 | uint8_t(bytes[at + 3]);
  };
  EXPECT_EQ(word(16), uint32_t(drawing.width));
  EXPECT_EQ(word(20), uint32_t(drawing.height));
  EXPECT_NE(bytes, png(Drawing{drawing.width, drawing.height, {}, {}, {}}, 1));
}

TEST(Report, HtmlStandsAlone) {
  const std::string page = html_report(parse_timing_report(sample()));
  for (const char *foreign :
       {"<script", "<link", "<img", "<iframe", "href=", "src=", "@import", "url("})
    EXPECT_FALSE(contains(page, foreign)) << foreign;
  EXPECT_TRUE(contains(page, "folder/&lt;&quot;name&quot; &amp; more&gt;.h:7"));
  EXPECT_FALSE(contains(page, "& more>"));
  for (const char *part : {"<svg ", "v_mfma_f32_32x32x16_bf16", "modelled on gfx950",
                           "0123456789abcdef", "not for this head dim", "width:300px"})
    EXPECT_TRUE(contains(page, part)) << part;
}

TEST(Report, TraceTracksNeverOverlap) {
  const Json trace = Json::parse(chrome_trace(parse_timing_report(sample()), 100));
  EXPECT_EQ(trace["otherData"]["modelled"], true);
  EXPECT_EQ(trace["otherData"]["constants_hash"], "0123456789abcdef");
  EXPECT_EQ(trace["otherData"]["truncated"], false);
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::pair<int, int>, double> ends;
  std::map<std::string, int> processes;
  int events = 0;
  for (const Json &event : trace["traceEvents"]) {
    const std::pair<int, int> track(event["pid"], event["tid"]);
    if (event["ph"] == "M") {
      (event["name"] == "process_name" ? processes[event["args"]["name"]] = event["pid"]
                                       : (names[track] = event["args"]["name"], 0));
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    ++events;
    EXPECT_TRUE(names.count(track)) << event;
    // The tracks are written in order of time.
    const double begin = event["ts"], end = begin + double(event["dur"]);
    EXPECT_GE(begin, ends[track]) << event;
    ends[track] = end;
  }
  EXPECT_EQ(events, 12);  // each of the 6 once for its wave and once for its unit
  // Two SIMDs; scalar, vector and matrix unit of SIMD 0, matrix unit of SIMD 3.
  EXPECT_EQ(processes.size(), 6u);
  // Two exponentials of one SIMD overlap: two tracks.
  std::set<std::string> tracks;
  for (const auto &[track, name] : names) tracks.insert(name);
  EXPECT_EQ(tracks, (std::set<std::string>{"wave 0", "wave 3", "wave 4", "SIMD 0 scalar 1",
                                           "SIMD 0 vector 1", "SIMD 0 vector 2", "SIMD 0 matrix 1",
                                           "SIMD 3 matrix 1"}));
  const Json &matrix =
      *std::find_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                    [](const Json &event) { return event["name"] == "v_mfma_f32_32x32x16_bf16"; });
  EXPECT_DOUBLE_EQ(matrix["ts"].get<double>(), 100);
  EXPECT_DOUBLE_EQ(matrix["dur"].get<double>(), 4);  // until the wave's next instruction
  EXPECT_EQ(matrix["args"]["source"], "folder/<\"name\" & more>.h:7");
}

TEST(Report, TraceKeepsTheEarliestEvents) {
  const Json trace = Json::parse(chrome_trace(parse_timing_report(sample()), 2));
  EXPECT_EQ(trace["otherData"]["truncated"], true);
  std::vector<double> clocks;
  for (const Json &event : trace["traceEvents"])
    if (event["ph"] == "X") clocks.push_back(event["ts"]);
  std::sort(clocks.begin(), clocks.end());
  EXPECT_EQ(clocks, (std::vector<double>{0, 0, 100, 100}));
}

}  // namespace
}  // namespace flydsl::tools
