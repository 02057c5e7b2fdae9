#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/library_handle.h"
#include "tools/subprocess.h"

namespace flydsl::tools {
namespace {

using Archive = std::unique_ptr<flydsl_aot_archive, decltype(&flydsl_aot_archive_close)>;

// Those of other architectures that are in the same folder.
void print_other_archives(const std::filesystem::path &of_device) {
  std::error_code none;
  std::set<std::filesystem::path> others;
  for (const auto &entry : std::filesystem::directory_iterator(of_device.parent_path(), none))
    if (entry.path().extension() == ".fda" && entry.path().filename() != of_device.filename())
      others.insert(entry.path());
  for (const std::filesystem::path &path : others) {
    flydsl_aot_archive *opened = nullptr;
    if (flydsl_aot_archive_open(path.c_str(), &opened) != FLYDSL_AOT_OK) {
      std::printf("beside it  %s\n", flydsl_aot_last_error());
      continue;
    }
    const Archive archive(opened, flydsl_aot_archive_close);
    std::printf("beside it  %s (%s, %" PRIu32 " kernels%s)\n", path.c_str(),
                flydsl_aot_archive_arch(opened), flydsl_aot_archive_count(opened),
                flydsl_aot_archive_executed(opened) ? "" : ", compiled, not executed");
  }
}

// What the architecture has: operators and how many kernels each; then all of them.
void print_kernels(const char *archive_path) {
  flydsl_aot_archive *opened = nullptr;
  check(flydsl_aot_archive_open(archive_path, &opened), archive_path);
  const Archive archive(opened, flydsl_aot_archive_close);
  if (!flydsl_aot_archive_executed(archive.get()))
    std::printf("           compiled, not executed: calls need FLYDSL_AOT_ENABLE_EXPERIMENTAL=1\n");
  std::map<std::string, int> of_operator;
  std::string lines;
  for (uint32_t i = 0; i < flydsl_aot_archive_count(archive.get()); ++i) {
    flydsl_aot_archive_entry entry{};
    entry.struct_size = sizeof entry;
    check(flydsl_aot_archive_get(archive.get(), i, &entry), archive_path);
    ++of_operator[entry.op];
    lines += std::string("  ") + entry.name + " (" + entry.op + ", " + entry.backend + ")\n";
  }
  const char *before = "operators  ";
  for (const auto &[op, kernels] : of_operator) {
    std::printf("%s%s %d", before, op.c_str(), kernels);
    before = ", ";
  }
  std::printf("%s%s", of_operator.empty() ? "" : "\n", lines.c_str());
}

// Installed beside the command (packaging/CMakeLists.txt); not there in a build folder.
void print_licences() {
  std::error_code none;
  const std::filesystem::path others =
      program_folder().parent_path() / "share/doc/flydsl_aot/THIRD_PARTY.txt";
  std::printf("licence    MIT");
  if (std::filesystem::exists(others, none)) std::printf("; what is linked in: %s", others.c_str());
  std::printf("\n");
}

}  // namespace

void command_info(const OpenArguments &arguments) {
  const uint32_t version = flydsl_aot_version();
  std::printf("library    flydsl_aot %" PRIu32 ".%" PRIu32 ".%" PRIu32 "\n", version / 10000,
              version / 100 % 100, version % 100);
  print_licences();
  LibraryHandle library;
  flydsl_aot_status status = library.try_open(arguments);
  if (arguments.device.empty() &&
      (status == FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND || status == FLYDSL_AOT_NO_DEVICE)) {
    // Nothing was asked for by name: a machine without a GPU still has archives to show.
    std::printf("no GPU     %s\n", flydsl_aot_last_error());
    OpenArguments none = arguments;
    none.device = "none";
    status = library.try_open(none);
  }
  if (status != FLYDSL_AOT_OK)
    fail_with_status(status, "cannot open the library", flydsl_aot_last_error());

  const flydsl_aot_info info = library.info();
  std::printf("device     %s\n", describe_device(info).c_str());
  if (info.device != FLYDSL_AOT_DEVICE_NONE) {
    std::printf("           %s, %" PRIu32 " compute units, %" PRIu32
                " device(s), runtime version %" PRIu32 "\n",
                info.device_name, info.compute_units, info.device_count, info.runtime_version);
  }
  std::printf("arch       %s\narchive    %s\n", info.arch, info.archive_path);
  print_other_archives(info.archive_path);
  std::printf("kernels    %" PRIu32 "\n", info.kernel_count);
  print_kernels(info.archive_path);
}

}  // namespace flydsl::tools
