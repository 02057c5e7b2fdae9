#include "tools/cuda_device.h"

#include <dlfcn.h>

#include <algorithm>

#include "tools/exit_status.h"
#include "tools/subprocess.h"

namespace flydsl::tools {
namespace {

constexpr const char *kLibrary = "libflydsl_aot_cuda.so";
constexpr const char *kOperators[] = {
    "rms_norm", "layer_norm", "rms_norm_backward", "layer_norm_backward", "topk", "topk_softmax"};

}  // namespace

std::filesystem::path cuda_library_folder() {
  const std::filesystem::path folder = program_folder().parent_path() / "lib";
  if (!std::filesystem::exists(folder / kLibrary)) {
    bad_input(std::string("--device cuda: no ") + kLibrary + " in " + folder.string() +
              "; configure with -DFLYDSL_AOT_CUDA=ON");
  }
  return folder;
}

void require_cuda_operators(const std::vector<std::string> &operators) {
  for (const std::string &op : operators) {
    if (std::find(std::begin(kOperators), std::end(kOperators), op) == std::end(kOperators))
      bad_input("--device cuda: '" + op +
                "' is not one of rms_norm, layer_norm, their backwards, topk, topk_softmax");
  }
}

std::string cuda_device_library() {
  const std::filesystem::path folder = cuda_library_folder();
  // Said here, since the library would name ways to AMD's runtime.
  if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
    throw ToolError(kExitFailure, std::string("--device cuda: no NVIDIA driver: ") + dlerror());
  return (folder / kLibrary).string();
}

}  // namespace flydsl::tools
