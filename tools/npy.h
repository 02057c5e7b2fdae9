// NumPy's .npy files: format versions 1.0, 2.0 and 3.0 of numpy/lib/format.py, plain numeric types,
// little-endian. Reading trusts nothing in the file: sizes are checked against the file's real
// length before memory is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flydsl::tools {

struct NpyArray {
  std::string descr;           // NumPy type, e.g. "<u2", "<f4", "|u1"
  std::vector<int64_t> shape;  // at most 8 axes
  std::vector<uint8_t> bytes;  // elements in C order
};

// Bytes of one element of `descr`; 0 if it is not a type that these functions handle.
size_t npy_element_bytes(const std::string &descr);

// Reads a file; Fortran-ordered data is brought into C order. Throws std::runtime_error whose text
// says what is wrong with the file, without its name.
NpyArray read_npy(const std::string &path);

// Writes a file under a temporary name beside its final one; commit() renames it. Nothing is left
// behind, and an existing file stays as it was, unless commit() was reached. Throws
// std::runtime_error as read_npy does.
class NpyWriter {
 public:
  explicit NpyWriter(const std::string &path);
  ~NpyWriter();
  NpyWriter(const NpyWriter &) = delete;
  NpyWriter &operator=(const NpyWriter &) = delete;

  void write(const NpyArray &array);
  void commit();

 private:
  std::string path_;
  std::string temporary_path_;
  int file_ = -1;
};

}  // namespace flydsl::tools
