#include "emulator/hip/hiprtc_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace flydsl::emu::hip {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "flydsl_emu_rtc.XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  const fs::path &path() const { return path_; }

 private:
  fs::path path_;
};

bool write_file(const fs::path &path, const std::string &text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  return bool(file.flush());
}

std::string read_file(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A header's include name stays inside of the include folder.
bool inside(const std::string &name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const fs::path &part : path)
    if (part == "..") return false;
  return true;
}

// Starts the program without a shell, its output going to `log`. Its exit status; -1 when it could
// not be started.
int run(const std::vector<std::string> &words, const fs::path &log) {
  std::vector<char *> arguments;
  for (const std::string &word : words) arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = 0;
  const int failed =
      posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

CompilerOutput run_device_compiler(const CompilerInput &input) {
  CompilerOutput output;
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    output.log = std::string("no temporary folder: ") + std::strerror(errno);
    return output;
  }
  const fs::path source = folder.path() / "source.hip", headers = folder.path() / "include",
                 object = folder.path() / "code.co", log = folder.path() / "log";
  // Messages name the program, not the temporary file.
  bool written = write_file(source, "#line 1 \"" + input.name + "\"\n" + input.source);
  for (const auto &[name, text] : input.headers) {
    if (!inside(name)) {
      output.log = "header name \"" + name + "\" leaves the include folder";
      output.ran = true;
      return output;
    }
    written = written && write_file(headers / name, text);
  }
  if (!written) {
    output.log = "cannot write to " + folder.path().string();
    return output;
  }
  const char *compiler = std::getenv("FLYDSL_EMU_CXX");
  std::vector<std::string> words = {compiler != nullptr && *compiler != 0 ? compiler : "clang++-22",
                                    "-x",
                                    "hip",
                                    "--cuda-device-only",
                                    "--no-gpu-bundle-output",
                                    "-nogpulib",
                                    "-nogpuinc",
                                    "-O3",
                                    "-std=c++17",
                                    "-D__HIPCC_RTC__=1",
                                    "-fno-diagnostics-color",
                                    "-I" + headers.string()};
  words.insert(words.end(), input.options.begin(), input.options.end());
  words.insert(words.end(), {"-o", object.string(), source.string()});
  const int status = run(words, log);
  output.log = read_file(log);
  // 127: the C library found no such program only after the fork.
  output.ran = status >= 0 && status != 127;
  if (!output.ran) output.log += "cannot run the compiler " + words[0] + " (FLYDSL_EMU_CXX)\n";
  output.ok = status == 0;
  if (output.ok) output.code = read_file(object);
  return output;
}

}  // namespace flydsl::emu::hip
