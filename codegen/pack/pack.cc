// flydsl-aot-pack: builds a kernel archive from a manifest and compiled code objects.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "codegen/pack/input.h"
#include "src/archive/writer.h"

namespace {

flydsl::Status pack(const std::string &manifest, const std::string &objects,
                    const std::vector<std::string> &imports, const std::string &out) {
  flydsl::archive::ArchiveSpec spec;
  FLYDSL_RETURN_IF_ERROR(flydsl::pack::read_input(manifest, objects, &spec));
  for (const std::string &folder : imports)
    FLYDSL_RETURN_IF_ERROR(flydsl::pack::read_import(folder, &spec));
  std::vector<unsigned char> file;
  flydsl::archive::WriteReport report;
  FLYDSL_RETURN_IF_ERROR(flydsl::archive::build(spec, &file, &report));
  FLYDSL_RETURN_IF_ERROR(flydsl::archive::write_file(out, file));
  std::printf("%s: %zu kernels, %llu bytes of code objects, dictionary %llu, file %llu bytes\n",
              out.c_str(), spec.kernels.size(), static_cast<unsigned long long>(report.image_bytes),
              static_cast<unsigned long long>(report.dictionary_bytes),
              static_cast<unsigned long long>(report.file_bytes));
  return {};
}

}  // namespace

int main(int argc, char **argv) {
  CLI::App app("Builds a kernel archive (docs/archive-format.md) from compiled code objects.");
  std::string manifest, objects, out;
  std::vector<std::string> imports;
  app.add_option("--manifest", manifest, "manifest.json of the generator")->required();
  app.add_option("--objects", objects, "folder that the manifest's object paths start from")
      ->required();
  app.add_option("--import", imports, "folder that codegen/import made; may be repeated");
  app.add_option("--out", out, "archive to write, e.g. flydsl_aot.gfx950.fda")->required();
  CLI11_PARSE(app, argc, argv);
  const flydsl::Status status = pack(manifest, objects, imports, out);
  if (status.ok()) return 0;
  std::fprintf(stderr, "flydsl-aot-pack: %s\n", status.message().c_str());
  return 1;
}
