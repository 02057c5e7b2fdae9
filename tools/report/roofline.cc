#include "tools/report/roofline.h"

#include <algorithm>
#include <cmath>

#include "tools/report/format.h"
#include "tools/report/summary.h"

namespace flydsl::tools {
namespace {

constexpr double kWidth = 760, kHeight = 480;
constexpr double kLeft = 76, kRight = 736, kTop = 48, kBottom = 404;
constexpr uint32_t kAxis = 0x444444, kGrid = 0xdddddd, kRoof = 0x1f4e8c, kOurs = 0xc03020,
                   kPeer = 0x3a7d34, kHypothesis = 0xc08020, kMuted = 0x777777;

struct Point {
  std::string name;
  double intensity = 0, tflops = 0;
  uint32_t colour = 0;
  bool filled = true;
};

std::vector<Point> points_of(const TimingReport &report) {
  std::vector<Point> points;
  // A launch that never reaches HBM has no finite intensity: it stands at the right end.
  const auto intensity = [](double flops, double bytes) {
    return bytes > 0 ? flops / bytes : INFINITY;
  };
  const double ours = intensity(report.matrix_flops, report.hbm_bytes);
  for (const LdsHypothesis &hypothesis : report.lds_hypotheses) {
    points.push_back({"LDS " + hypothesis.bytes_per_clock + " B/clk", ours, hypothesis.tflops,
                      kHypothesis, false});
  }
  for (const PeerReport &peer : report.peers) {
    if (!peer.refused.empty() || peer.seconds <= 0) continue;
    points.push_back({peer.peer, intensity(peer.matrix_flops, peer.hbm_bytes),
                      peer.matrix_flops / peer.seconds * 1e-12, kPeer, true});
  }
  points.push_back(
      {report.launches.empty() ? "this launch" : "this call", ours, report.tflops, kOurs, true});
  // Nothing to show on a logarithmic axis.
  std::erase_if(points, [](const Point &point) { return !(point.tflops > 0); });
  return points;
}

// Whole decades.
struct Axis {
  double low, high;  // of the values
  double from, to;   // in pixels
  double place(double value) const {
    const double share = std::log10(value / low) / std::log10(high / low);
    return from + std::clamp(share, 0.0, 1.0) * (to - from);
  }
};

Axis axis_over(double least, double most, double from, double to) {
  return {std::pow(10, std::floor(std::log10(least))), std::pow(10, std::ceil(std::log10(most))),
          from, to};
}

void add_grid(Drawing &drawing, const Axis &x, const Axis &y) {
  for (double value = x.low; value <= x.high * 1.001; value *= 10) {
    const double at = x.place(value);
    drawing.lines.push_back({at, kTop, at, kBottom, kGrid});
    drawing.labels.push_back({at, kBottom + 18, format("%g", value), 12, Anchor::kMiddle, kAxis});
  }
  for (double value = y.low; value <= y.high * 1.001; value *= 10) {
    const double at = y.place(value);
    drawing.lines.push_back({kLeft, at, kRight, at, kGrid});
    drawing.labels.push_back({kLeft - 8, at + 4, format("%g", value), 12, Anchor::kEnd, kAxis});
  }
  drawing.lines.push_back({kLeft, kBottom, kRight, kBottom, kAxis});
  drawing.lines.push_back({kLeft, kTop, kLeft, kBottom, kAxis});
  drawing.labels.push_back({(kLeft + kRight) / 2, kBottom + 40,
                            "flops of matrix instructions per byte of HBM traffic", 13,
                            Anchor::kMiddle, kAxis});
  drawing.labels.push_back(
      {20, (kTop + kBottom) / 2, "TFLOP/s, modelled", 13, Anchor::kMiddle, kAxis, -90});
}

}  // namespace

Drawing roofline(const TimingReport &report) {
  const std::vector<Point> points = points_of(report);
  const double peak = report.peak_tflops;
  const double slope = report.peak_hbm_gb_per_s * 1e-3;  // TFLOP/s for each flop per byte
  const double ridge = peak / slope;
  double least_x = ridge / 10, most_x = ridge * 10, least_y = peak / 10;
  for (const Point &point : points) {
    if (std::isfinite(point.intensity) && point.intensity > 0) {
      least_x = std::min(least_x, point.intensity / 2);
      most_x = std::max(most_x, point.intensity * 2);
    }
    least_y = std::min(least_y, point.tflops / 2);
  }
  const Axis x = axis_over(least_x, most_x, kLeft, kRight);
  const Axis y = axis_over(least_y, peak * 1.5, kBottom, kTop);

  Drawing drawing{kWidth, kHeight, {}, {}, {}};
  // All names would not fit.
  const std::string others =
      report.launches.empty() ? "" : format(" and %zu more", report.launches.size() - 1);
  drawing.labels.push_back({kLeft, 28, "Roofline, modelled: " + report.kernel + others, 15});
  add_grid(drawing, x, y);
  // The bandwidth roof enters at the left edge or at the bottom, whichever it meets first.
  const double start = std::max(x.low, y.low / slope);
  drawing.lines.push_back(
      {x.place(start), y.place(start * slope), x.place(ridge), y.place(peak), kRoof, 2});
  drawing.lines.push_back({x.place(ridge), y.place(peak), kRight, y.place(peak), kRoof, 2});
  drawing.labels.push_back({kRight, y.place(peak) - 7, format("matrix peak %.0f TFLOP/s", peak), 12,
                            Anchor::kEnd, kRoof});
  const double middle = std::sqrt(start * ridge);
  const double angle =
      -std::atan2(y.place(start * slope) - y.place(peak), x.place(ridge) - x.place(start)) * 180 /
      M_PI;
  drawing.labels.push_back({x.place(middle) - 5, y.place(middle * slope) - 7,
                            format("HBM %.0f GB/s", report.peak_hbm_gb_per_s), 12, Anchor::kMiddle,
                            kRoof, angle});

  double label_y = kTop + 30;
  for (const Point &point : points) {
    const double at_x = x.place(point.intensity), at_y = y.place(point.tflops);
    drawing.circles.push_back({at_x, at_y, point.filled ? 5.0 : 4.0, point.colour, point.filled});
    // Points of one problem lie on each other: the names stand in a legend.
    drawing.circles.push_back({kLeft + 16, label_y - 4, 5, point.colour, point.filled});
    drawing.labels.push_back({kLeft + 28, label_y,
                              format("%s: %.0f TFLOP/s", point.name.c_str(), point.tflops), 12,
                              Anchor::kStart, point.colour});
    label_y += 18;
  }
  drawing.labels.push_back({kRight, kHeight - 10, provenance(report), 11, Anchor::kEnd, kMuted});
  return drawing;
}

}  // namespace flydsl::tools
