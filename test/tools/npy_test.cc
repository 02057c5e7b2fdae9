// read_npy on damaged files: every prefix and every flipped bit of a good file gives an error or an
// array of the size the file has, never anything else; and what write_npy wrote is read back.
#include "tools/npy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace flydsl::tools {
namespace {

class Npy : public ::testing::Test {
 protected:
  Npy() {
    char folder[] = "/tmp/npy_test.XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~Npy() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string &name) const { return folder_ + "/" + name; }
  std::string put(const std::string &name, const std::string &bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  static std::string get(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  static std::string with_header(const std::string &header, const std::string &data,
                                 int version = 1) {
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(version);
    bytes += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
      bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
    return bytes + header + data;
  }
  std::string error_of(const std::string &bytes) const {
    try {
      read_npy(put("bad.npy", bytes));
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "(no error)";
  }

  std::string folder_;
};

TEST_F(Npy, WrittenArraysAreReadBack) {
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{}, {5}, {2, 3}, {0, 7}, {1, 1, 1, 1, 1, 1, 1, 2}}) {
    size_t elements = 1;
    for (const int64_t size : shape) elements *= static_cast<size_t>(size);
    NpyArray array{"<u2", shape, std::vector<uint8_t>(elements * 2)};
    for (size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<uint8_t>(i * 37);
    OutputFile file(path("a.npy"));
    write_npy(file, array);
    file.commit();
    const NpyArray read = read_npy(path("a.npy"));
    EXPECT_EQ(read.descr, array.descr);
    EXPECT_EQ(read.shape, array.shape);
    EXPECT_EQ(read.bytes, array.bytes);
    // numpy/lib/format.py: the data starts at a multiple of 64.
    EXPECT_EQ((get(path("a.npy")).size() - array.bytes.size()) % 64, 0u);
  }
}

TEST_F(Npy, VersionsAndLiterals) {
  const std::string data = "\x01\x02\x03\x04";
  for (int version = 1; version <= 3; ++version) {
    const NpyArray array = read_npy(put(
        "a.npy",
        with_header("{\"shape\":(2,), 'fortran_order' : False,'descr':'<u2'} \n", data, version)));
    EXPECT_EQ(array.shape, std::vector<int64_t>{2});
    EXPECT_EQ(array.bytes, std::vector<uint8_t>({1, 2, 3, 4}));
  }
  EXPECT_NE(error_of(with_header("{}", "", 4)).find("version 4"), std::string::npos);
}

TEST_F(Npy, FortranOrderBecomesCOrder) {
  // [[1, 2, 3], [4, 5, 6]] stored column by column.
  const NpyArray array =
      read_npy(put("f.npy", with_header("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}",
                                        "\x01\x04\x02\x05\x03\x06")));
  EXPECT_EQ(array.bytes, std::vector<uint8_t>({1, 2, 3, 4, 5, 6}));
}

TEST_F(Npy, RefusalsSayWhatIsWrong) {
  const auto header = [](const std::string &descr, const std::string &shape) {
    return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}";
  };
  const auto expect = [&](const std::string &bytes, const std::string &words) {
    EXPECT_NE(error_of(bytes).find(words), std::string::npos)
        << error_of(bytes) << " lacks: " << words;
  };
  expect("", "only 0 bytes");
  expect("PK\x03\x04 a zip file, for instance", "wrong magic");
  expect(with_header(header("'>f4'", "(1,)"), "1234"), "big-endian");
  expect(with_header(header("'<c8'", "(1,)"), "12345678"), "'<c8'");
  expect(with_header(header("[('a', '<f4')]", "(1,)"), "1234"), "structured");
  expect(with_header(header("'<f4'", "(2,)"), "1234"),
         "claims 8 bytes of data in its header but holds 4");
  expect(with_header(header("'<f4'", "(1,)"), "12345678"),
         "claims 4 bytes of data in its header but holds 8");
  expect(with_header(header("'<f4'", "(4294967296, 4294967296, 4294967296)"), "1234"), "2^64");
  expect(with_header(header("'<f4'", "(99999999999999999999,)"), "1234"), "2^63");
  expect(with_header(header("'<f4'", "(1,1,1,1,1,1,1,1,1)"), "1234"), "8 axes");
  expect(with_header(header("'<f4'", "(-1,)"), "1234"), "malformed");
  expect(with_header(header("'<f4'", "(1,)") + "x", "1234"), "malformed");
  expect(with_header("{'descr': '<f4', 'shape': (1,)}", "1234"), "lacks");
  expect(with_header("{'descr': '<f4', 'descr': '<f4'}", "1234"), "twice");
  expect(with_header("{'answer': 42}", "1234"), "'answer'");
  EXPECT_THROW(read_npy(path("missing.npy")), std::runtime_error);
  EXPECT_THROW(read_npy(folder_), std::runtime_error);
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_THROW(read_npy(path("fifo")), std::runtime_error) << "must not wait for a writer";
}

TEST_F(Npy, EveryTruncationIsRefusedAndNoFlippedBitDoesHarm) {
  const std::string good = with_header(
      "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }\n", std::string(12, 'x'));
  ASSERT_EQ(error_of(good), "(no error)");
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(error_of(good.substr(0, length)), "(no error)") << "truncated to " << length;
  }
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      EXPECT_LE(read_npy(put("flipped.npy", flipped)).bytes.size(), good.size());
    } catch (const std::runtime_error &) {
    }
  }
}

}  // namespace
}  // namespace flydsl::tools
