// A file that appears under its name complete or not at all, whatever ends the command.
#pragma once

#include <cstddef>
#include <string>

namespace flydsl::tools {

// An entry of the list of temporary files that a signal removes.
struct TemporaryFile {
  const char *path = nullptr;
  TemporaryFile *next = nullptr;
};

// Written under a temporary name beside its final one; commit() renames it. Nothing is left behind, and
// an existing file stays as it was, unless commit() was reached; that holds also when SIGHUP,
// SIGINT, SIGPIPE or SIGTERM ends the process. Throws std::runtime_error whose text says what is
// wrong, without the file's name.
class OutputFile {
 public:
  explicit OutputFile(const std::string &path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void write(const void *data, size_t bytes);
  void write(const std::string &text) { write(text.data(), text.size()); }
  void commit();

 private:
  std::string path_;
  std::string temporary_path_;
  TemporaryFile temporary_;
  int file_ = -1;  // -1 also once it is closed by commit()
};

}  // namespace flydsl::tools
