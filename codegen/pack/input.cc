#include "codegen/pack/input.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "src/paths/paths.h"

namespace flydsl::pack {
namespace {

using Json = nlohmann::json;

Status invalid(const std::string &where, const std::string &what) {
  return {FLYDSL_AOT_INVALID_ARGUMENT, where + ": " + what};
}

Status read_bytes(const std::string &path, std::vector<unsigned char> *bytes) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return invalid("'" + path + "'", "cannot be opened");
  bytes->assign(std::istreambuf_iterator<char>(stream), {});
  return stream.bad() ? invalid("'" + path + "'", "cannot be read") : Status();
}

Status read_json(const std::string &path, Json *json) {
  std::vector<unsigned char> bytes;
  FLYDSL_RETURN_IF_ERROR(read_bytes(path, &bytes));
  *json = Json::parse(bytes, nullptr, false);
  if (json->is_discarded()) return invalid("'" + path + "'", "is not JSON");
  return json->is_object() ? Status() : invalid("'" + path + "'", "is not a JSON object");
}

// Typed access to the fields of one JSON object; the first failure is kept.
class Fields {
 public:
  Fields(const Json &object, std::string where) : object_(object), where_(std::move(where)) {}

  const Status &status() const { return status_; }

  void string(const char *name, std::string *value) {
    const Json *field = find(name);
    if (!field) return;
    if (!field->is_string()) return fail(name, "is not a string");
    *value = field->get<std::string>();
  }

  void boolean(const char *name, bool *value) {
    const Json *field = find(name);
    if (!field) return;
    if (!field->is_boolean()) return fail(name, "is neither true nor false");
    *value = field->get<bool>();
  }

  void number(const char *name, uint64_t *value) {
    if (const Json *field = find(name)) take(name, *field, UINT64_MAX, value);
  }

  void number(const char *name, uint32_t *value) {
    if (const Json *field = find(name)) take(name, *field, UINT32_MAX, value);
  }

  // 64-bit hashes and keys, as "0x" and hexadecimal digits: JSON numbers lose bits in other
  // readers.
  void hex(const char *name, uint64_t *value) {
    std::string spelled;
    string(name, &spelled);
    if (!status_.ok()) return;
    char *end = nullptr;
    errno = 0;
    *value = std::strtoull(spelled.c_str(), &end, 16);
    const bool valid = spelled.size() > 2 && spelled.size() <= 18 &&
                       spelled.compare(0, 2, "0x") == 0 && *end == '\0';
    if (!valid || errno != 0) fail(name, "is not a hexadecimal number such as \"0x1f\"");
  }

  template <typename T>
  void numbers(const char *name, size_t count, T *values) {
    const Json *field = find(name);
    if (!field) return;
    if (!field->is_array() || field->size() != count) {
      return fail(name, "is not an array of " + std::to_string(count) + " numbers");
    }
    for (size_t i = 0; i < count; ++i)
      take(name, (*field)[i], std::numeric_limits<T>::max(), &values[i]);
  }

  const Json *array(const char *name) {
    const Json *field = find(name);
    if (field && !field->is_array()) fail(name, "is not an array");
    return status_.ok() ? field : nullptr;
  }

  void fail(const char *name, const std::string &what) {
    if (status_.ok()) status_ = invalid(where_, std::string("field '") + name + "' " + what);
  }

 private:
  const Json *find(const char *name) {
    if (!status_.ok()) return nullptr;
    const auto at = object_.is_object() ? object_.find(name) : object_.end();
    if (!object_.is_object() || at == object_.end()) {
      fail(name, "is missing");
      return nullptr;
    }
    return &*at;
  }

  template <typename T>
  void take(const char *name, const Json &field, uint64_t limit, T *value) {
    if (!field.is_number_unsigned() || field.get<uint64_t>() > limit) {
      return fail(name, "is not a whole number from 0 to " + std::to_string(limit));
    }
    *value = static_cast<T>(field.get<uint64_t>());
  }

  const Json &object_;
  std::string where_;
  Status status_;
};

// What a work-group of the manifest may be in the light of what the compiler made of the kernel.
Status check_metadata(const archive::KernelSpec &kernel, Fields *metadata) {
  std::string symbol;
  uint32_t largest = 0, vgpr_spills = 0, sgpr_spills = 0;
  metadata->string("symbol", &symbol);
  metadata->number("max_flat_workgroup_size", &largest);
  metadata->number("vgpr_spill_count", &vgpr_spills);
  metadata->number("sgpr_spill_count", &sgpr_spills);
  FLYDSL_RETURN_IF_ERROR(metadata->status());
  const uint64_t work_items = uint64_t{kernel.block[0]} * kernel.block[1] * kernel.block[2];
  if (symbol != kernel.symbol)
    metadata->fail("symbol", "is '" + symbol + "', the manifest says '" + kernel.symbol + "'");
  if (work_items > largest) {
    metadata->fail("max_flat_workgroup_size", "is " + std::to_string(largest) +
                                                  ", the manifest's block has " +
                                                  std::to_string(work_items) + " work-items");
  }
  if (vgpr_spills != 0)
    metadata->fail("vgpr_spill_count", "is " + std::to_string(vgpr_spills) + ", not 0");
  if (sgpr_spills != 0)
    metadata->fail("sgpr_spill_count", "is " + std::to_string(sgpr_spills) + ", not 0");
  return metadata->status();
}

Status read_metadata(const std::string &path, archive::KernelSpec *kernel) {
  Json json;
  FLYDSL_RETURN_IF_ERROR(read_json(path, &json));
  Fields fields(json, "'" + path + "'");
  fields.string("target_id", &kernel->target_id);
  fields.number("kernarg_bytes", &kernel->kernarg_bytes);
  fields.number("lds_static_bytes", &kernel->lds_static_bytes);
  fields.number("scratch_bytes", &kernel->scratch_bytes);
  fields.number("vgpr_count", &kernel->vgpr_count);
  fields.number("sgpr_count", &kernel->sgpr_count);
  fields.number("wave_size", &kernel->wave_size);
  FLYDSL_RETURN_IF_ERROR(fields.status());
  return check_metadata(*kernel, &fields);
}

Status read_kernel(const Json &json, const std::string &where, const std::string &objects,
                   archive::KernelSpec *kernel) {
  std::string rule, object;
  Fields fields(json, where);
  fields.string("name", &kernel->name);
  fields.string("op", &kernel->op);
  fields.string("backend", &kernel->backend);
  fields.string("symbol", &kernel->symbol);
  fields.string("grid_rule", &rule);
  fields.numbers("block", 3, kernel->block);
  fields.numbers("tile", 3, kernel->tile);
  fields.number("lds_dynamic_bytes", &kernel->lds_dynamic_bytes);
  fields.hex("kernarg_layout_id", &kernel->kernarg_layout_id);
  fields.hex("functional_key", &kernel->functional_key);
  fields.string("object", &object);
  FLYDSL_RETURN_IF_ERROR(fields.status());
  if (rule != "linear_tiles" && rule != "persistent")
    fields.fail("grid_rule", "is '" + rule + "'; known: linear_tiles, persistent");
  kernel->grid_rule =
      rule == "persistent" ? archive::kGridRulePersistent : archive::kGridRuleLinearTiles;
  FLYDSL_RETURN_IF_ERROR(fields.status());
  const std::string path = join_path(objects, object);
  FLYDSL_RETURN_IF_ERROR(read_bytes(path, &kernel->image));
  const std::string elf =
                        "\x7f"
                        "ELF",
                    ptx = ".version";  // PTX: codegen/generate/inspect_ptx.py
  const auto begins_with = [&](const std::string &text) {
    return kernel->image.size() >= 64 &&
           std::equal(text.begin(), text.end(), kernel->image.begin());
  };
  if (!begins_with(elf) && !begins_with(ptx))
    return invalid("'" + path + "'", "is not an ELF code object, nor PTX");
  return read_metadata(path + ".json", kernel);
}

Status read_candidate(const Json &json, const std::string &where,
                      archive::CandidateSpec *candidate) {
  uint64_t seq_q[2] = {}, seq_k[2] = {};
  Fields fields(json, where);
  fields.string("kernel", &candidate->kernel);
  fields.number("align_bytes", &candidate->align_bytes);
  fields.numbers("seq_q", 2, seq_q);
  fields.numbers("seq_k", 2, seq_k);
  candidate->seq_q_min = seq_q[0];
  candidate->seq_q_max = seq_q[1];
  candidate->seq_k_min = seq_k[0];
  candidate->seq_k_max = seq_k[1];
  return fields.status();
}

Status read_selection(const Json &json, const std::string &where, archive::SelectionSpec *row) {
  Fields fields(json, where);
  fields.string("op", &row->op);
  fields.hex("functional_key", &row->functional_key);
  const Json *candidates = fields.array("candidates");
  FLYDSL_RETURN_IF_ERROR(fields.status());
  for (size_t i = 0; i < candidates->size(); ++i) {
    FLYDSL_RETURN_IF_ERROR(read_candidate((*candidates)[i],
                                          where + " candidate " + std::to_string(i),
                                          &row->candidates.emplace_back()));
  }
  return {};
}

// The kernels of a manifest and the keys that list them. Candidates of a key that is there follow those it has.
Status read_kernels(const Json &kernels, const Json &selection, const std::string &where,
                    const std::string &objects, archive::ArchiveSpec *spec) {
  for (size_t i = 0; i < kernels.size(); ++i) {
    FLYDSL_RETURN_IF_ERROR(read_kernel(kernels[i], where + " kernel " + std::to_string(i), objects,
                                       &spec->kernels.emplace_back()));
  }
  for (size_t i = 0; i < selection.size(); ++i) {
    archive::SelectionSpec row;
    FLYDSL_RETURN_IF_ERROR(
        read_selection(selection[i], where + " selection " + std::to_string(i), &row));
    const auto same = std::find_if(
        spec->selection.begin(), spec->selection.end(), [&](const archive::SelectionSpec &other) {
          return other.op == row.op && other.functional_key == row.functional_key;
        });
    if (same == spec->selection.end()) {
      spec->selection.push_back(std::move(row));
    } else {
      same->candidates.insert(same->candidates.end(), row.candidates.begin(), row.candidates.end());
    }
  }
  return {};
}

Status read_tuning(const Json &json, const std::string &where, archive::TuningSpec *spec) {
  Fields fields(json, where);
  fields.string("op", &spec->op);
  fields.hex("key", &spec->key);
  const Json *rows = fields.array("rows");
  FLYDSL_RETURN_IF_ERROR(fields.status());
  for (size_t i = 0; i < rows->size(); ++i) {
    archive::TuningRowSpec &row = spec->rows.emplace_back();
    Fields of_row((*rows)[i], where + " row " + std::to_string(i));
    of_row.string("kernel", &row.kernel);
    of_row.number("rows", &row.rows);
    of_row.number("keys", &row.keys);
    of_row.number("parallel", &row.parallel);
    of_row.number("alignment", &row.align_bytes);
    of_row.number("compute_units", &row.compute_units);
    of_row.number("figure_ns", &row.figure_ns);
    of_row.string("origin", &row.origin);
    FLYDSL_RETURN_IF_ERROR(of_row.status());
  }
  return {};
}

}  // namespace

Status read_input(const std::string &manifest, const std::string &objects,
                  archive::ArchiveSpec *spec) {
  Json json;
  FLYDSL_RETURN_IF_ERROR(read_json(manifest, &json));
  const std::string where = "'" + manifest + "'";
  Fields fields(json, where);
  fields.string("arch", &spec->arch);
  fields.hex("abi_id", &spec->abi_id);
  fields.number("library_version", &spec->library_version);
  fields.boolean("executed", &spec->executed);
  const Json *kernels = fields.array("kernels");
  const Json *selection = fields.array("selection");
  const Json *tuning = fields.array("tuning");
  FLYDSL_RETURN_IF_ERROR(fields.status());
  FLYDSL_RETURN_IF_ERROR(read_kernels(*kernels, *selection, where, objects, spec));
  for (size_t i = 0; i < tuning->size(); ++i) {
    FLYDSL_RETURN_IF_ERROR(read_tuning((*tuning)[i], where + " tuning " + std::to_string(i),
                                       &spec->tuning.emplace_back()));
  }
  return {};
}

Status read_import(const std::string &folder, archive::ArchiveSpec *spec) {
  const std::string manifest = join_path(folder, "manifest.json");
  Json json;
  FLYDSL_RETURN_IF_ERROR(read_json(manifest, &json));
  const std::string where = "'" + manifest + "'";
  std::string arch;
  Fields fields(json, where);
  fields.string("arch", &arch);
  const Json *kernels = fields.array("kernels");
  const Json *selection = fields.array("selection");
  FLYDSL_RETURN_IF_ERROR(fields.status());
  if (arch != spec->arch)
    return invalid(where, "is for " + arch + ", the archive for " + spec->arch);
  return read_kernels(*kernels, *selection, where, folder, spec);
}

}  // namespace flydsl::pack
