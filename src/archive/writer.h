// Writing a kernel archive. Used by codegen/pack and tests; not part of the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/archive/format.h"
#include "src/status/status.h"

namespace flydsl::archive {

struct KernelSpec {
  std::string name, op, backend, target_id, symbol;
  uint32_t grid_rule = kGridRuleLinearTiles;
  uint64_t kernarg_layout_id = 0;
  uint32_t kernarg_bytes = 0;
  uint32_t wave_size = 64;
  uint32_t block[3] = {1, 1, 1};
  uint32_t tile[3] = {1, 0, 0};
  uint32_t lds_static_bytes = 0, lds_dynamic_bytes = 0, scratch_bytes = 0;
  uint32_t vgpr_count = 0, sgpr_count = 0;
  uint64_t functional_key = 0;
  std::vector<unsigned char> image;  // the code object
};

struct CandidateSpec {
  std::string kernel;  // name of a KernelSpec
  uint32_t align_bytes = 1;
  uint64_t seq_q_min = 0, seq_q_max = 0, seq_k_min = 0, seq_k_max = 0;
};

struct SelectionSpec {
  std::string op;
  uint64_t functional_key = 0;
  std::vector<CandidateSpec> candidates;  // best first
};

struct TuningRowSpec {
  std::string kernel;  // name of a KernelSpec that is a candidate; empty: the first that fits
  uint64_t rows = 0, keys = 0, parallel = 1;
  uint32_t align_bytes = 1, compute_units = 1;
  uint64_t figure_ns = 0;
  std::string origin;
};

struct TuningSpec {
  std::string op;
  uint64_t key = 0;
  std::vector<TuningRowSpec> rows;
};

struct ArchiveSpec {
  std::string arch;
  uint64_t abi_id = 0;
  uint32_t library_version = 0;
  bool executed = true;  // the kernels were, on a device or the emulator
  std::vector<KernelSpec> kernels;
  std::vector<SelectionSpec> selection;
  std::vector<TuningSpec> tuning;
};

struct WriteReport {
  uint64_t image_bytes = 0;       // all code objects, uncompressed
  uint64_t dictionary_bytes = 0;  // 0: a dictionary did not help
  uint64_t file_bytes = 0;
};

// The bytes of the archive: the same for the same input on every machine with the same zstd. A
// dictionary is trained on the code objects and kept only when it makes the whole file smaller.
// Errors: INVALID_ARGUMENT, with what is inconsistent.
Status build(const ArchiveSpec &spec, std::vector<unsigned char> *file, WriteReport *report);

// Writes through a temporary file in the same directory, fsync and rename, so that a reader sees
// the old file or the new one. Errors: ARCHIVE_IO.
Status write_file(const std::string &path, const std::vector<unsigned char> &file);

}  // namespace flydsl::archive
