// Seeded random numbers.
#pragma once

#include <cmath>
#include <cstdint>

namespace flydsl::verify {

// SplitMix64 (Steele, Lea and Flood 2014): any seed is good, equal on every platform.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t limit) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(limit));
  }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(double probability) { return uniform() < probability; }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // Standard normal, Box-Muller.
  float normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return static_cast<float>(radius * std::cos(6.283185307179586 * uniform()));
  }

 private:
  uint64_t state_;
};

}  // namespace flydsl::verify
