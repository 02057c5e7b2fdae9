// The guards of tools/verify/device_tensor must see a byte that is written where no element is.
#include "tools/verify/device_tensor.h"

#include <gtest/gtest.h>

#include "test/support/library.h"

namespace flydsl::test {
namespace {

using verify::DeviceTensor;
using verify::Placement;

TEST(DeviceTensor, StrayBytesAreFound) {
  // Rows of 3 elements in a pitch of 5, behind 4 elements and before 6: bytes 8 to 8 + (5 + 3) * 2.
  DeviceTensor tensor(emulator(), FLYDSL_AOT_BF16, {2, 3}, Placement{{}, {0, 2}, {}, 4, 6},
                      0xabababab);
  tensor.set(std::vector<uint16_t>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(tensor.get<uint16_t>(), (std::vector<uint16_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(tensor.untouched());
  char *const first = static_cast<char *>(tensor.tensor().data);
  const auto after_writing = [&](int64_t byte) {
    const uint8_t value = 0x17;
    uint8_t before = 0;
    EXPECT_EQ(flydsl_aot_device_download(emulator(), &before, first + byte, 1), FLYDSL_AOT_OK);
    EXPECT_EQ(flydsl_aot_device_upload(emulator(), first + byte, &value, 1), FLYDSL_AOT_OK);
    tensor.get<uint16_t>();
    EXPECT_FALSE(tensor.untouched()) << byte;
    const std::string text = tensor.changed_outside();
    EXPECT_EQ(flydsl_aot_device_upload(emulator(), first + byte, &before, 1), FLYDSL_AOT_OK);
    return text;
  };
  for (const int64_t byte : {-8, -1, 6, 9, 16, 27})
    EXPECT_EQ(after_writing(byte), "byte " + std::to_string(byte + 8) +
                                       " of 36 lies outside the tensor and was changed");
  for (const int64_t byte : {0, 5, 10, 15}) EXPECT_EQ(after_writing(byte), "");
}

}  // namespace
}  // namespace flydsl::test
