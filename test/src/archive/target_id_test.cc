#include "src/archive/target_id.h"

#include <gtest/gtest.h>

namespace flydsl::archive {
namespace {

TEST(TargetId, Parses) {
  struct Row {
    const char *text;
    const char *processor;  // null: refused
    Feature sramecc, xnack;
  };
  const Row rows[] = {
      {"gfx950:sramecc+:xnack-", "gfx950", Feature::On, Feature::Off},
      {"gfx950:xnack-:sramecc+", "gfx950", Feature::On, Feature::Off},
      {"gfx950", "gfx950", Feature::Any, Feature::Any},
      {"gfx942:sramecc+:xnack-", "gfx942", Feature::On, Feature::Off},
      {"gfx90a:sramecc+:xnack+", "gfx90a", Feature::On, Feature::On},
      {"gfx90a:xnack+", "gfx90a", Feature::Any, Feature::On},
      {"gfx90c", "gfx90c", Feature::Any, Feature::Any},
      {"gfx9999", "gfx9999", Feature::Any, Feature::Any},
      {"gfx9-4-generic", "gfx9-4-generic", Feature::Any, Feature::Any},
      {"sm_90", "sm_90", Feature::Any, Feature::Any},
      {"", nullptr, {}, {}},
      {"gfx", nullptr, {}, {}},
      {"sm_", nullptr, {}, {}},
      {"compute_90", nullptr, {}, {}},
      {"GFX950", nullptr, {}, {}},
      {"gfx950:", nullptr, {}, {}},
      {"gfx950::xnack+", nullptr, {}, {}},
      {"gfx950:xnack", nullptr, {}, {}},
      {"gfx950:xnack*", nullptr, {}, {}},
      {"gfx950:+", nullptr, {}, {}},
      {"gfx950:xnack+:xnack-", nullptr, {}, {}},
      {"gfx950:tgsplit+", nullptr, {}, {}},
      {"gfx950 ", nullptr, {}, {}},
      {"../gfx950", nullptr, {}, {}},
      {"gfx12345678901234567890123456789", nullptr, {}, {}},
  };
  for (const Row &row : rows) {
    const auto id = parse_target_id(row.text);
    ASSERT_EQ(id.has_value(), row.processor != nullptr) << row.text;
    if (!id) continue;
    EXPECT_EQ(id->processor, row.processor);
    EXPECT_EQ(id->sramecc, row.sramecc) << row.text;
    EXPECT_EQ(id->xnack, row.xnack) << row.text;
  }
}

TEST(TargetId, Compatible) {
  struct Row {
    const char *code, *device;
    const char *reason;  // null: runs
  };
  const Row rows[] = {
      {"gfx950", "gfx950:sramecc+:xnack-", nullptr},
      {"gfx950", "gfx950", nullptr},
      {"gfx950:sramecc+:xnack-", "gfx950:sramecc+:xnack-", nullptr},
      {"gfx950:xnack-:sramecc+", "gfx950:sramecc+:xnack-", nullptr},
      {"gfx950:xnack-", "gfx950:sramecc+:xnack-", nullptr},
      {"gfx950:xnack+", "gfx950:sramecc+:xnack-", "needs xnack on"},
      {"gfx950:sramecc-", "gfx950:sramecc+:xnack-", "needs sramecc off"},
      {"gfx950:sramecc+", "gfx950", "unstated"},
      {"gfx90a", "gfx90c", "the device is gfx90c"},
      {"gfx942", "gfx950:sramecc+:xnack-", "built for gfx942"},
      {"gfx90a:xnack+", "gfx90a:sramecc+:xnack+", nullptr},
  };
  for (const Row &row : rows) {
    std::string reason;
    const bool fits = compatible(*parse_target_id(row.code), *parse_target_id(row.device), &reason);
    EXPECT_EQ(fits, row.reason == nullptr) << row.code << " on " << row.device;
    EXPECT_EQ(compatible(*parse_target_id(row.code), *parse_target_id(row.device)), fits);
    if (row.reason) {
      EXPECT_NE(reason.find(row.reason), std::string::npos) << reason;
    }
  }
}

}  // namespace
}  // namespace flydsl::archive
