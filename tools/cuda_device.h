// --device cuda: an NVIDIA GPU in place of AMD's, in a development build (src/device/README.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace flydsl::tools {

// The library's folder of the build that this program is in; refuses one without libflydsl_aot_cuda.so.
std::filesystem::path cuda_library_folder();
// Refuses operators without a kernel for such a GPU.
void require_cuda_operators(const std::vector<std::string> &operators);
// libflydsl_aot_cuda.so, what HIP's functions are taken from; refuses a machine without NVIDIA's driver.
std::string cuda_device_library();

}  // namespace flydsl::tools
