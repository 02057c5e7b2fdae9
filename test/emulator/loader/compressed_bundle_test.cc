// Compressed offload bundles: those that clang-offload-bundler 22 wrote (fuzz/corpus), each version and method
// written here, and damage of each field.
#include "emulator/loader/compressed_bundle.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "emulator/loader/code_object.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/MD5.h"
#include "test/emulator/loader/test_objects.h"

namespace flydsl::emu {
namespace {

using testing::HasSubstr;

LoadResult load(const std::vector<char> &bytes, const char *target = "gfx950:sramecc+:xnack-") {
  TargetId device;
  std::string error;
  EXPECT_TRUE(parse_target_id(target, &device, &error)) << error;
  return load_code_object(bytes.data(), bytes.size(), device);
}

struct Fields {
  uint16_t version = 2, method = 1;
  int64_t more_file_bytes = 0, more_plain_bytes = 0;  // than there are
  uint64_t hash_flips = 0;
};

std::vector<char> compressed(const std::vector<char> &plain, const Fields &fields) {
  const llvm::ArrayRef<uint8_t> input(reinterpret_cast<const uint8_t *>(plain.data()),
                                      plain.size());
  llvm::SmallVector<uint8_t, 0> stream;
  if (fields.method == 0)
    llvm::compression::zlib::compress(input, stream);
  else
    llvm::compression::zstd::compress(input, stream);
  std::vector<char> bundle = {'C', 'C', 'O', 'B'};
  const auto put = [&](uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) bundle.push_back(static_cast<char>(value >> (8 * i)));
  };
  put(fields.version, 2);
  put(fields.method, 2);
  const size_t size_bytes = fields.version == 3 ? 8 : 4;
  const size_t header_bytes = fields.version == 1 ? 20 : fields.version == 3 ? 32 : 24;
  if (fields.version != 1)
    put(header_bytes + stream.size() + uint64_t(fields.more_file_bytes), size_bytes);
  put(plain.size() + uint64_t(fields.more_plain_bytes), size_bytes);
  put(llvm::MD5::hash(input).low() ^ fields.hash_flips, 8);
  EXPECT_EQ(bundle.size(), header_bytes);
  bundle.insert(bundle.end(), stream.begin(), stream.end());
  return bundle;
}

TEST(CompressedBundle, WrittenByClang) {
  for (const char *name : {"compressed_v2_zstd.hipfb", "compressed_v3_zstd.hipfb"}) {
    std::ifstream file(std::string(FLYDSL_AOT_TEST_CORPUS "/") + name, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    ASSERT_GT(bytes.size(), 1000u) << name;
    EXPECT_EQ(compressed_bundle_bytes(bytes.data(), bytes.size()), bytes.size());
    const LoadResult result = load(bytes);
    ASSERT_TRUE(result.object) << name << ": " << result.error;
    EXPECT_NE(result.object->find_kernel("k"), nullptr);
    EXPECT_EQ(load(bytes, "gfx90a").status, LoadStatus::kOk);
    EXPECT_EQ(load(bytes, "gfx942").status, LoadStatus::kWrongTarget);
  }
}

TEST(CompressedBundle, EveryVersionAndMethod) {
  const std::vector<char> plain = test::read_image("bundle.hipfb");
  for (uint16_t version = 1; version <= 3; ++version)
    for (uint16_t method = 0; method <= 1; ++method) {
      SCOPED_TRACE(testing::Message() << "version " << version << " method " << method);
      std::vector<char> bundle = compressed(plain, {.version = version, .method = method});
      ASSERT_LT(bundle.size(), plain.size());
      const size_t bytes = bundle.size();
      const LoadResult result = load(bundle);
      ASSERT_TRUE(result.object) << result.error;
      EXPECT_EQ(result.object->kernels().size(), 9u);
      // In memory it is followed by something else.
      bundle.insert(bundle.end(), 4096, 'x');
      EXPECT_EQ(load(bundle).status, LoadStatus::kOk);
      EXPECT_EQ(compressed_bundle_bytes(bundle.data(), bundle.size()),
                version == 1 ? bundle.size() : bytes);
    }
}

TEST(CompressedBundle, EveryPrefixIsRefused) {
  for (uint16_t version = 1; version <= 3; ++version)
    for (uint16_t method = 0; method <= 1; ++method) {
      const std::vector<char> good =
          compressed(test::read_image("bundle.hipfb"), {.version = version, .method = method});
      for (size_t bytes = 4; bytes < good.size(); bytes += bytes < 64 ? 1 : 97) {
        const LoadResult result = load({good.begin(), good.begin() + long(bytes)});
        EXPECT_EQ(result.status, LoadStatus::kInvalidImage) << bytes;
        EXPECT_THAT(result.error, HasSubstr("compressed offload bundle: "));
      }
    }
}

// The hash sees what the decompressor lets through.
TEST(CompressedBundle, FlippedBitsAreRefusedOrHarmless) {
  constexpr uint64_t kSeed = 41;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  for (uint16_t method = 0; method <= 1; ++method) {
    const std::vector<char> plain = test::read_image("bundle.hipfb");
    const std::vector<char> good = compressed(plain, {.version = 3, .method = method});
    int refused = 0;
    for (int round = 0; round < 300; ++round) {
      std::vector<char> bad = good;
      // From the method on: what comes before says that, and which, bundle it is.
      bad[6 + random() % (bad.size() - 6)] ^= static_cast<char>(1 << random() % 8);
      std::string error;
      const InflatedBundle inflated = inflate_bundle(bad.data(), bad.size(), &error);
      EXPECT_EQ(inflated.data == nullptr, !error.empty());
      refused += inflated.data == nullptr;
      if (inflated.data) {
        ASSERT_EQ(inflated.bytes, plain.size());
        EXPECT_EQ(std::memcmp(inflated.data.get(), plain.data(), plain.size()), 0);
      }
    }
    EXPECT_GT(refused, 250);
  }
}

TEST(CompressedBundle, SaysWhatIsWrong) {
  const std::vector<char> plain = test::read_image("bundle.hipfb");
  const auto error = [&](const Fields &fields) {
    const LoadResult result = load(compressed(plain, fields));
    EXPECT_EQ(result.status, LoadStatus::kInvalidImage);
    return result.error;
  };
  EXPECT_THAT(error({.version = 0}), HasSubstr("version 0, versions 1 to 3"));
  EXPECT_THAT(error({.version = 4}), HasSubstr("version 4, versions 1 to 3"));
  EXPECT_THAT(error({.method = 2}), HasSubstr("compression method 2"));
  EXPECT_THAT(error({.more_file_bytes = 1}), HasSubstr("truncated?"));
  EXPECT_THAT(error({.more_file_bytes = -1}), HasSubstr("compressed offload bundle: "));
  EXPECT_THAT(error({.more_file_bytes = -1 << 30}), HasSubstr("truncated?"));
  EXPECT_THAT(error({.more_plain_bytes = 1}), HasSubstr("bytes, its header says"));
  EXPECT_THAT(error({.more_plain_bytes = -1}), HasSubstr("compressed offload bundle: "));
  EXPECT_THAT(error({.method = 0, .more_plain_bytes = -1}), HasSubstr("compressed offload bundle"));
  EXPECT_THAT(error({.version = 3, .more_plain_bytes = int64_t{1} << 60}), HasSubstr("1 GiB"));
  EXPECT_THAT(error({.hash_flips = 1}), HasSubstr("hash"));
  std::vector<char> damaged = compressed(plain, {.method = 1});
  damaged[damaged.size() / 2] ^= 0x40;
  EXPECT_EQ(load(damaged).status, LoadStatus::kInvalidImage);
  EXPECT_THAT(load(compressed(test::read_object("gfx950_v5.co"), {})).error,
              HasSubstr("no offload bundle"));
  EXPECT_THAT(load(compressed(compressed(plain, {}), {})).error, HasSubstr("no offload bundle"));
}

}  // namespace
}  // namespace flydsl::emu
