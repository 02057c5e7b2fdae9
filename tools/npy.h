// NumPy's .npy files: format versions 1.0, 2.0 and 3.0 of numpy/lib/format.py, plain numeric types,
// little-endian. Reading trusts nothing in the file: sizes are checked against the file's real
// length before memory is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/output_file.h"

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

// Throws std::runtime_error as read_npy does.
void write_npy(OutputFile &file, const NpyArray &array);

}  // namespace flydsl::tools
