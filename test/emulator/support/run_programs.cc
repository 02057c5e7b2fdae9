// flydsl-emu-run: runs a batch of machine-code programs, each as one wave, and writes what they left behind.
//
// flydsl-emu-run INPUT OUTPUT, both sequences of records of little-endian words:
//   input   processor (0 gfx90a, 1 gfx942, 2 gfx950), bytes of code, code padded to 4 bytes, state
//   output  address of the code (8 bytes), bytes of fault text, text padded to 4 bytes, state
//   state   scc, mode, 128 scalar registers, kVectors vector and kAccumulators accumulation registers
//           of 64 lanes, kMemoryBytes of LDS, kMemoryBytes of memory that begins at kMemoryAddress,
//           kScratchBytes of private memory of each lane
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "test/emulator/support/snippet.h"

namespace {

using flydsl::emu::test::Snippet;

constexpr int kVectors = 72, kAccumulators = 32;
constexpr size_t kMemoryBytes = 4096;
constexpr uint32_t kScratchBytes = 256;
constexpr uint64_t kMemoryAddress = 0x200000000000;

// Copies one state between a record and a snippet; `load` says which way.
void move_state(bool load, uint8_t *record, Snippet &snippet, uint8_t *memory) {
  const auto part = [&](void *live, size_t bytes) {
    std::memcpy(load ? live : record, load ? record : live, bytes);
    record += bytes;
  };
  part(&snippet.wave().scc, 4);
  part(&snippet.wave().mode, 4);
  part(snippet.wave().s, sizeof snippet.wave().s);
  for (int reg = 0; reg < kVectors; ++reg) part(&snippet.v(reg, 0), 64 * 4);
  for (int reg = 0; reg < kAccumulators; ++reg) part(&snippet.a(reg, 0), 64 * 4);
  part(snippet.lds().data(), kMemoryBytes);
  part(memory, kMemoryBytes);
  part(snippet.wave().scratch, 64 * kScratchBytes);
}

constexpr size_t kStateBytes =
    8 + 128 * 4 + (kVectors + kAccumulators) * 64 * 4 + 2 * kMemoryBytes + 64 * kScratchBytes;

std::vector<uint8_t> padded(const std::string &text) {
  std::vector<uint8_t> bytes(text.begin(), text.end());
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

void append_word(std::vector<uint8_t> &out, uint32_t word) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(&word);
  out.insert(out.end(), bytes, bytes + 4);
}

int run_batch(const char *input, const char *output) {
  std::ifstream file(input, std::ios::binary);
  std::vector<uint8_t> in{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  void *memory =
      mmap(reinterpret_cast<void *>(kMemoryAddress), kMemoryBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("flydsl-emu-run: mmap");
    return 1;
  }
  const char *const processors[] = {"gfx90a", "gfx942", "gfx950"};
  std::vector<uint8_t> out;
  size_t at = 0;
  while (at + 8 <= in.size()) {
    uint32_t head[2];
    std::memcpy(head, &in[at], 8);
    at += 8;
    const size_t code_room = (head[1] + 3) / 4 * 4;
    if (head[0] > 2 || in.size() - at < code_room + kStateBytes) {
      std::fprintf(stderr, "flydsl-emu-run: malformed record at byte %zu\n", at - 8);
      return 1;
    }
    const std::vector<uint8_t> code(in.begin() + long(at), in.begin() + long(at + head[1]));
    at += code_room;
    Snippet snippet(code, flydsl::emu::host_level(), processors[head[0]]);
    snippet.allow(memory, kMemoryBytes);
    snippet.set_scratch(kScratchBytes);
    move_state(true, &in[at], snippet, static_cast<uint8_t *>(memory));
    at += kStateBytes;
    const std::string fault = snippet.run();
    append_word(out, uint32_t(snippet.code_address()));
    append_word(out, uint32_t(snippet.code_address() >> 32));
    append_word(out, uint32_t(fault.size()));
    const std::vector<uint8_t> text = padded(fault);
    out.insert(out.end(), text.begin(), text.end());
    out.resize(out.size() + kStateBytes);
    move_state(false, &out[out.size() - kStateBytes], snippet, static_cast<uint8_t *>(memory));
  }
  std::ofstream(output, std::ios::binary)
      .write(reinterpret_cast<const char *>(out.data()), long(out.size()));
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: flydsl-emu-run INPUT OUTPUT\n");
    return 2;
  }
  try {
    return run_batch(argv[1], argv[2]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "flydsl-emu-run: %s\n", error.what());
    return 1;
  }
}
