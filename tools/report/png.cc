#include "tools/report/png.h"

#include <dlfcn.h>

#include <cmath>
#include <memory>
#include <stdexcept>

namespace flydsl::tools {
namespace {

// cairo's C ABI, as https://www.cairographics.org/manual/ gives it; stable within libcairo.so.2.
struct CairoTextExtents {
  double x_bearing, y_bearing, width, height, x_advance, y_advance;
};
constexpr int kFormatRgb24 = 1, kSlantNormal = 0, kWeightNormal = 0;
using WriteFunction = int(void *closure, const unsigned char *data, unsigned length);

#define FLYDSL_CAIRO_FUNCTIONS(X)                                                   \
  X(image_surface_create, void *(int format, int width, int height))                \
  X(surface_destroy, void(void *surface))                                           \
  X(surface_write_to_png_stream, int(void *surface, WriteFunction *, void *))       \
  X(create, void *(void *surface))                                                  \
  X(destroy, void(void *cairo))                                                     \
  X(status, int(void *cairo))                                                       \
  X(status_to_string, const char *(int status))                                     \
  X(scale, void(void *cairo, double x, double y))                                   \
  X(save, void(void *cairo))                                                        \
  X(restore, void(void *cairo))                                                     \
  X(translate, void(void *cairo, double x, double y))                               \
  X(rotate, void(void *cairo, double radians))                                      \
  X(set_source_rgb, void(void *cairo, double r, double g, double b))                \
  X(paint, void(void *cairo))                                                       \
  X(set_line_width, void(void *cairo, double width))                                \
  X(set_dash, void(void *cairo, const double *dashes, int count, double offset))    \
  X(move_to, void(void *cairo, double x, double y))                                 \
  X(line_to, void(void *cairo, double x, double y))                                 \
  X(new_path, void(void *cairo))                                                    \
  X(arc, void(void *cairo, double x, double y, double r, double from, double to))   \
  X(fill_preserve, void(void *cairo))                                               \
  X(stroke, void(void *cairo))                                                      \
  X(select_font_face, void(void *cairo, const char *family, int slant, int weight)) \
  X(set_font_size, void(void *cairo, double size))                                  \
  X(text_extents, void(void *cairo, const char *text, CairoTextExtents *))          \
  X(show_text, void(void *cairo, const char *text))

struct Cairo {
#define FLYDSL_CAIRO_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  FLYDSL_CAIRO_FUNCTIONS(FLYDSL_CAIRO_MEMBER)
#undef FLYDSL_CAIRO_MEMBER
};

const Cairo &cairo() {
  static const Cairo functions = [] {
    // Stays loaded: fontconfig does not take being unloaded.
    void *library = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      throw std::runtime_error(
          "libcairo.so.2 cannot be opened; on Debian: apt-get install libcairo2");
    }
    Cairo result;
#define FLYDSL_CAIRO_LOAD(name, ...)                                                     \
  result.name = reinterpret_cast<decltype(result.name)>(dlsym(library, "cairo_" #name)); \
  if (!result.name) throw std::runtime_error("libcairo.so.2 has no cairo_" #name);
    FLYDSL_CAIRO_FUNCTIONS(FLYDSL_CAIRO_LOAD)
#undef FLYDSL_CAIRO_LOAD
    return result;
  }();
  return functions;
}

int append(void *closure, const unsigned char *data, unsigned length) {
  static_cast<std::string *>(closure)->append(reinterpret_cast<const char *>(data), length);
  return 0;
}

void draw(void *to, const Drawing &drawing) {
  const Cairo &c = cairo();
  const auto colour = [&](uint32_t rgb) {
    c.set_source_rgb(to, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0);
  };
  for (const Line &line : drawing.lines) {
    constexpr double kDashes[] = {5, 4};
    colour(line.colour);
    c.set_line_width(to, line.width);
    c.set_dash(to, kDashes, line.dashed ? 2 : 0, 0);
    c.move_to(to, line.x1, line.y1);
    c.line_to(to, line.x2, line.y2);
    c.stroke(to);
  }
  c.set_dash(to, nullptr, 0, 0);
  c.set_line_width(to, 2);
  for (const Circle &circle : drawing.circles) {
    c.new_path(to);
    c.arc(to, circle.x, circle.y, circle.radius, 0, 2 * M_PI);
    colour(circle.filled ? circle.colour : 0xffffff);
    c.fill_preserve(to);
    colour(circle.colour);
    c.stroke(to);
  }
  c.select_font_face(to, "sans-serif", kSlantNormal, kWeightNormal);
  for (const Label &label : drawing.labels) {
    c.save(to);
    colour(label.colour);
    c.set_font_size(to, label.size);
    CairoTextExtents extents{};
    c.text_extents(to, label.text.c_str(), &extents);
    c.translate(to, label.x, label.y);
    c.rotate(to, label.degrees * M_PI / 180);
    c.move_to(to,
              label.anchor == Anchor::kStart    ? 0
              : label.anchor == Anchor::kMiddle ? -extents.x_advance / 2
                                                : -extents.x_advance,
              0);
    c.show_text(to, label.text.c_str());
    c.restore(to);
  }
}

}  // namespace

std::string png(const Drawing &drawing, double pixels_per_unit) {
  const Cairo &c = cairo();
  const std::unique_ptr<void, void (*)(void *)> surface(
      c.image_surface_create(kFormatRgb24, static_cast<int>(drawing.width * pixels_per_unit),
                             static_cast<int>(drawing.height * pixels_per_unit)),
      c.surface_destroy);
  const std::unique_ptr<void, void (*)(void *)> context(c.create(surface.get()), c.destroy);
  c.scale(context.get(), pixels_per_unit, pixels_per_unit);
  c.set_source_rgb(context.get(), 1, 1, 1);
  c.paint(context.get());
  draw(context.get(), drawing);
  std::string bytes;
  int status = c.status(context.get());
  if (status == 0) status = c.surface_write_to_png_stream(surface.get(), append, &bytes);
  if (status != 0) throw std::runtime_error(std::string("cairo: ") + c.status_to_string(status));
  return bytes;
}

}  // namespace flydsl::tools
