// Streams and captures for a program that sees no HIP but what aotriton/runtime.h names.
#pragma once

#include <cstddef>
#include <functional>

namespace flydsl::test {

class ClientStream {
 public:
  ClientStream();
  ~ClientStream();
  ClientStream(const ClientStream &) = delete;
  ClientStream &operator=(const ClientStream &) = delete;
  void *get() const { return stream_; }

  // Captures `work` (in the mode that PyTorch uses: global), and runs it `times`, each after `before`, with nothing left to run. Nodes
  // of the graph.
  size_t capture(const std::function<void()> &work, int times,
                 const std::function<void(int time)> &before = [](int) {});

 private:
  void *stream_ = nullptr;
};

}  // namespace flydsl::test
