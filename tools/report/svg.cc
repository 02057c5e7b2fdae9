#include "tools/report/svg.h"

#include "tools/report/format.h"

namespace flydsl::tools {

std::string svg(const Drawing &drawing) {
  std::string text = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" "
      "fill=\"#ffffff\"/>\n",
      drawing.width, drawing.height, drawing.width, drawing.height);
  for (const Line &line : drawing.lines) {
    text += format(
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#%06x\" "
        "stroke-width=\"%.1f\"%s/>\n",
        line.x1, line.y1, line.x2, line.y2, line.colour, line.width,
        line.dashed ? " stroke-dasharray=\"5 4\"" : "");
  }
  for (const Circle &circle : drawing.circles) {
    text += format(
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#%06x\" stroke=\"#%06x\" "
        "stroke-width=\"2\"/>\n",
        circle.x, circle.y, circle.radius, circle.filled ? circle.colour : 0xffffff, circle.colour);
  }
  for (const Label &label : drawing.labels) {
    const char *anchor = label.anchor == Anchor::kStart    ? "start"
                         : label.anchor == Anchor::kMiddle ? "middle"
                                                           : "end";
    text += format(
        "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" text-anchor=\"%s\" "
        "fill=\"#%06x\"",
        label.x, label.y, label.size, anchor, label.colour);
    if (label.degrees != 0)
      text += format(" transform=\"rotate(%.1f %.1f %.1f)\"", label.degrees, label.x, label.y);
    text.append(">").append(escape_markup(label.text)).append("</text>\n");
  }
  return text + "</svg>\n";
}

}  // namespace flydsl::tools
