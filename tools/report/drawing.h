// A picture as a list of shapes, so that each output format only knows how to draw these. Coordinates
// are pixels from the top left; colours 0xRRGGBB.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flydsl::tools {

struct Line {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  uint32_t colour = 0;
  double width = 1;
  bool dashed = false;
};

struct Circle {
  double x = 0, y = 0, radius = 0;
  uint32_t colour = 0;
  bool filled = true;
};

enum class Anchor { kStart, kMiddle, kEnd };

struct Label {
  double x = 0, y = 0;  // of the baseline
  std::string text;
  double size = 12;
  Anchor anchor = Anchor::kStart;
  uint32_t colour = 0;
  double degrees = 0;  // clockwise, around (x, y)
};

struct Drawing {
  double width = 0, height = 0;
  std::vector<Line> lines;
  std::vector<Circle> circles;
  std::vector<Label> labels;
};

}  // namespace flydsl::tools
