#include "src/jit/hiprtc.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>

#include "src/device/hip_abi.h"
#include "src/log/log.h"
#include "src/paths/paths.h"

namespace flydsl::jit {
namespace {

constexpr int kSuccess = 0;            // HIPRTC_SUCCESS
constexpr size_t kMostLogBytes = 600;  // of a message; all of it goes to the log

// The compiler's own version stands in what it makes of this.
constexpr const char *kProbe =
    "extern \"C\" __attribute__((device, used)) const char flydsl_version[] = "
    "\"flydsl-compiler:\" __VERSION__;\n";
constexpr std::string_view kMark = "flydsl-compiler:";

struct Candidate {
  std::string path, origin;
  int mode = 0;
};

int note_hiprtc(dl_phdr_info *info, size_t, void *result) {
  if (!info->dlpi_name) return 0;
  const char *slash = std::strrchr(info->dlpi_name, '/');
  // Prefix only, as with the HIP runtime (src/device/load.cc); libhiprtc-builtins is not it.
  const char *base = slash ? slash + 1 : info->dlpi_name;
  if (std::strncmp(base, "libhiprtc", 9) != 0 || std::strstr(base, "builtins")) return 0;
  *static_cast<std::string *>(result) = info->dlpi_name;
  return 1;
}

std::vector<Candidate> candidates(const device::Api &device) {
  if (const char *path = std::getenv("FLYDSL_AOT_HIPRTC_LIBRARY"); path && *path)
    return {{path, "FLYDSL_AOT_HIPRTC_LIBRARY"}};
  const Candidate runtime = {device.library_path, "the device library"};
  if (device.emulator()) return {runtime};
  std::vector<Candidate> result;
  std::string loaded;
  dl_iterate_phdr(note_hiprtc, &loaded);
  if (!loaded.empty()) result.push_back({loaded, "already loaded in this process", RTLD_NOLOAD});
  const std::string soname =
      "libhiprtc.so." + std::to_string(device::hip_major(device.runtime_version));
  if (const size_t slash = device.library_path.rfind('/'); slash != std::string::npos)
    result.push_back(
        {join_path(device.library_path.substr(0, slash), soname), "beside the HIP runtime"});
  result.push_back({soname, "loader search"});
  result.push_back(runtime);
  return result;
}

}  // namespace

Status Hiprtc::load(const char *path, int mode) {
  dlerror();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | mode);
  if (!library) {
    const char *reason = dlerror();
    return error(FLYDSL_AOT_COMPILER_NOT_FOUND, "%s", reason ? reason : "dlopen failed");
  }
  std::string missing;
  const auto resolve = [&](const char *symbol, auto *function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, symbol));
    if (!*function) missing += missing.empty() ? symbol : std::string(", ") + symbol;
  };
  resolve("hiprtcGetErrorString", &get_error_string_);
  resolve("hiprtcVersion", &get_version_);
  resolve("hiprtcCreateProgram", &create_program_);
  resolve("hiprtcDestroyProgram", &destroy_program_);
  resolve("hiprtcCompileProgram", &compile_program_);
  resolve("hiprtcGetCodeSize", &get_code_size_);
  resolve("hiprtcGetCode", &get_code_);
  resolve("hiprtcGetProgramLogSize", &get_log_size_);
  resolve("hiprtcGetProgramLog", &get_log_);
  if (missing.empty()) return {};
  dlclose(library);
  return error(FLYDSL_AOT_COMPILER_NOT_FOUND, "lacks the function(s) %s", missing.c_str());
}

Status Hiprtc::open(const device::Api &device, Hiprtc *hiprtc) {
  std::string tried;
  for (const Candidate &candidate : candidates(device)) {
    Hiprtc found;
    const Status status = found.load(candidate.path.c_str(), candidate.mode);
    if (status.ok()) {
      found.path_ = candidate.path;
      FLYDSL_RETURN_IF_ERROR(found.read_version(device));
      FLYDSL_LOG(Info, "hipRTC %s, version %s", found.path_.c_str(), found.version_.c_str());
      *hiprtc = std::move(found);
      return {};
    }
    tried += "; '" + candidate.path + "' (" + candidate.origin + "): " + status.message();
  }
  return error(FLYDSL_AOT_COMPILER_NOT_FOUND,
               "no usable hipRTC%s. Set FLYDSL_AOT_HIPRTC_LIBRARY to its path", tried.c_str());
}

// hiprtcVersion is 9.0 of all releases since HIP 5, so that the compiler is asked, too.
Status Hiprtc::read_version(const device::Api &device) {
  int major = 0, minor = 0;
  if (const Result code = get_version_(&major, &minor); code != kSuccess)
    return error(FLYDSL_AOT_COMPILE_FAILED, "'%s': hiprtcVersion failed: %d", path_.c_str(), code);
  const Source probe[] = {{"version.hip", kProbe}};
  // Any architecture that every compiler knows: it is not run.
  const char *const options[] = {"--offload-arch=gfx90a"};
  std::vector<unsigned char> image;
  FLYDSL_RETURN_IF_ERROR(compile(probe, options, &image));
  const std::string_view text(reinterpret_cast<const char *>(image.data()), image.size());
  const size_t at = text.find(kMark);
  if (at == std::string_view::npos)
    return error(FLYDSL_AOT_COMPILE_FAILED, "'%s' does not say the version of its compiler",
                 path_.c_str());
  const std::string_view rest = text.substr(at + kMark.size());
  version_ = flydsl::text("hipRTC %d.%d, HIP %d, ", major, minor, device.runtime_version);
  version_ += rest.substr(0, rest.find('\0'));
  return {};
}

Status Hiprtc::compile(std::span<const Source> sources, std::span<const char *const> options,
                       std::vector<unsigned char> *image) const {
  // Views need not end with a zero.
  std::vector<std::string> texts;
  for (const Source &source : sources) {
    texts.emplace_back(source.name);
    texts.emplace_back(source.text);
  }
  std::vector<const char *> names, headers;
  for (size_t i = 2; i < texts.size(); i += 2) {
    names.push_back(texts[i].c_str());
    headers.push_back(texts[i + 1].c_str());
  }
  Program program = nullptr;
  const auto failed = [&](const char *call, Result code) {
    const char *what = get_error_string_(code);
    return error(FLYDSL_AOT_COMPILE_FAILED, "%s of '%s' failed: %d (%s)", call, path_.c_str(), code,
                 what ? what : "?");
  };
  Result code = create_program_(&program, texts[1].c_str(), texts[0].c_str(),
                                static_cast<int>(headers.size()), headers.data(), names.data());
  if (code != kSuccess) return failed("hiprtcCreateProgram", code);
  struct Destroy {
    const Hiprtc *hiprtc;
    Program program;
    ~Destroy() { hiprtc->destroy_program_(&program); }
  } destroy{this, program};

  code = compile_program_(program, static_cast<int>(options.size()), options.data());
  if (code != kSuccess) {
    std::string log;
    if (size_t bytes = 0; get_log_size_(program, &bytes) == kSuccess && bytes > 1) {
      log.resize(bytes);
      if (get_log_(program, log.data()) != kSuccess) log.clear();
      log.resize(std::strlen(log.c_str()));
    }
    FLYDSL_LOG(Warn, "%s", log.c_str());
    const Status status = failed("hiprtcCompileProgram", code);
    return error(status.code(), "%s: %.*s", status.message().c_str(), int{kMostLogBytes},
                 log.c_str());
  }
  size_t bytes = 0;
  code = get_code_size_(program, &bytes);
  if (code != kSuccess) return failed("hiprtcGetCodeSize", code);
  image->resize(bytes);
  code = get_code_(program, reinterpret_cast<char *>(image->data()));
  if (code != kSuccess) return failed("hiprtcGetCode", code);
  return {};
}

}  // namespace flydsl::jit
