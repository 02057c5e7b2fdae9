#include "tools/random_data.h"

#include <cmath>
#include <cstring>

#include "tools/exit_status.h"
#include "tools/verify/float8.h"
#include "tools/verify/mx_format.h"

namespace flydsl::tools {

uint64_t random_bits(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

namespace {

// Box and Muller.
double normal(uint64_t &state) {
  const double u = (static_cast<double>(random_bits(state) >> 11) + 1) * 0x1p-53;
  const double v = static_cast<double>(random_bits(state) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Rounded to nearest even; values of normal() are far below the overflow of either type.
uint16_t bf16_of(float value) {
  const uint32_t bits = bits_of(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
uint16_t fp16_of(float value) {
  // Times 2^-112 a float has the exponent bits of fp16, subnormal where that is.
  const uint32_t bits = bits_of(std::fabs(value) * 0x1p-112f);
  const uint32_t magnitude = (bits + 0xfff + (bits >> 13 & 1)) >> 13;
  return static_cast<uint16_t>(magnitude | (std::signbit(value) ? 0x8000 : 0));
}

template <typename Element, typename Convert>
std::vector<uint8_t> block_of(uint64_t stream, const Convert &convert) {
  std::vector<Element> values(kRandomBlockElements);
  uint64_t state = kRandomSeed + stream * 0x5851f42d4c957f2d;
  for (Element &value : values) value = convert(normal(state));
  std::vector<uint8_t> bytes(values.size() * sizeof(Element));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

std::vector<uint8_t> random_block(const std::string &name, flydsl_aot_dtype dtype,
                                  uint64_t stream) {
  switch (dtype) {
    case FLYDSL_AOT_BF16:
      return block_of<uint16_t>(stream, [](double x) { return bf16_of(static_cast<float>(x)); });
    case FLYDSL_AOT_FP16:
      return block_of<uint16_t>(stream, [](double x) { return fp16_of(static_cast<float>(x)); });
    case FLYDSL_AOT_FP32:
      return block_of<float>(stream, [](double x) { return static_cast<float>(x); });
    case FLYDSL_AOT_FP64:
      return block_of<double>(stream, [](double x) { return x; });
    case FLYDSL_AOT_E4M3:
    case FLYDSL_AOT_E5M2:
      return block_of<uint8_t>(stream, [dtype](double x) {
        return verify::float_to_float8(dtype, static_cast<float>(x));
      });
    case FLYDSL_AOT_E2M1X2: {
      std::vector<uint8_t> codes =
          block_of<uint8_t>(stream, [](double x) { return verify::double_to_e2m1(x); });
      codes.push_back(codes.front());  // there is an odd number of them
      return verify::packed_pairs(codes);
    }
    case FLYDSL_AOT_E8M0:  // 1, and its neighbours
      return block_of<uint8_t>(stream,
                               [](double x) { return static_cast<uint8_t>(127 + std::lround(x)); });
    case FLYDSL_AOT_BOOL:
      return block_of<uint8_t>(stream, [](double x) { return static_cast<uint8_t>(x > 0); });
    default:
      bad_input(name + " is " + flydsl_aot_dtype_name(dtype) +
                ": there is no random data of that type; give its values with --in " + name +
                "=FILE");
  }
}

}  // namespace flydsl::tools
