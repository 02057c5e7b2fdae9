// Reading what the archive is made of.
#pragma once

#include <string>

#include "src/archive/writer.h"
#include "src/status/status.h"

namespace flydsl::pack {

// Reads the manifest, every code object it names below `objects`, and the metadata beside each
// object. Errors: INVALID_ARGUMENT with the file and the field at fault.
Status read_input(const std::string &manifest, const std::string &objects,
                  archive::ArchiveSpec *spec);

// Adds the kernels of a folder that codegen/import/ made; its selection joins what is there.
Status read_import(const std::string &folder, archive::ArchiveSpec *spec);

}  // namespace flydsl::pack
