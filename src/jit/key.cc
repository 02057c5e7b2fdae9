#include "src/jit/key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/status/status.h"

namespace flydsl::jit {
namespace {

// Raised when code objects of the same key must not be taken any more.
constexpr uint64_t kScheme = 1;

// Lengths stand before texts, so that no two lists of them give the same bytes.
class Digest {
 public:
  Digest() { XXH3_128bits_reset(&state_); }
  void number(uint64_t value) { XXH3_128bits_update(&state_, &value, sizeof value); }
  void text(std::string_view text) {
    number(text.size());
    XXH3_128bits_update(&state_, text.data(), text.size());
  }
  Key key() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    return {hash.high64, hash.low64};
  }

 private:
  XXH3_state_t state_;
};

}  // namespace

std::string Key::text() const {
  return flydsl::text("%016llx%016llx", static_cast<unsigned long long>(high),
                      static_cast<unsigned long long>(low));
}

Key key_of(std::string_view compiler, std::string_view arch, std::span<const char *const> options,
           std::span<const Source> sources) {
  Digest digest;
  digest.number(kScheme);
  digest.text(compiler);
  digest.text(arch);
  digest.number(options.size());
  for (const char *option : options) digest.text(option);
  digest.number(sources.size());
  for (const Source &source : sources) {
    digest.text(source.name);
    digest.text(source.text);
  }
  return digest.key();
}

}  // namespace flydsl::jit
