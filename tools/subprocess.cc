#include "tools/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};

  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw ToolError(kExitFailure, std::string("pipe: ") + std::strerror(errno));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe &) = delete;
  Pipe &operator=(const Pipe &) = delete;
  void close_end(int which) {
    if (ends[which] >= 0) close(ends[which]);
    ends[which] = -1;
  }
};

constexpr int kNotStarted = 127;  // as a shell says it

// Both at once: a program that fills one pipe must not wait for the other to be read.
void read_both(Pipe (&pipes)[2], std::string *(&texts)[2]) {
  pollfd waiting[2] = {{pipes[0].ends[0], POLLIN, 0}, {pipes[1].ends[0], POLLIN, 0}};
  for (int open = 2; open > 0;) {
    if (poll(waiting, 2, -1) < 0 && errno != EINTR)
      throw ToolError(kExitFailure, std::string("poll: ") + std::strerror(errno));
    for (int i = 0; i < 2; ++i) {
      if (waiting[i].fd < 0 || !waiting[i].revents) continue;
      char buffer[1 << 16];
      const ssize_t count = read(waiting[i].fd, buffer, sizeof buffer);
      if (count > 0) {
        texts[i]->append(buffer, static_cast<size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        waiting[i].fd = -1;
        --open;
      }
    }
  }
}

}  // namespace

ProgramResult run_program(const std::vector<std::string> &arguments) {
  Pipe pipes[2];
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw ToolError(kExitFailure, std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    // Other threads may hold locks: nothing but system calls here. The program is told to end, as if from
    // the keyboard, when this one does.
    prctl(PR_SET_PDEATHSIG, SIGINT);
    if (getppid() != parent) _exit(kNotStarted);
    dup2(pipes[0].ends[1], STDOUT_FILENO);
    dup2(pipes[1].ends[1], STDERR_FILENO);
    execvp(argv[0], argv.data());
    const char *const reason[] = {argv[0], ": ", std::strerror(errno)};
    for (const char *part : reason)
      if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
    _exit(kNotStarted);
  }
  pipes[0].close_end(1);
  pipes[1].close_end(1);

  ProgramResult result;
  std::string *texts[2] = {&result.output, &result.errors};
  read_both(pipes, texts);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::filesystem::path program_folder() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of("\n ") + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

}  // namespace flydsl::tools
