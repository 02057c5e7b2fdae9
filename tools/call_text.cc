#include "tools/call_text.h"

#include <charconv>
#include <cstddef>
#include <cstring>
#include <sstream>

#include "tools/exit_status.h"

namespace flydsl::tools {

enum class Kind { tensor, f32, i32, u32, i64, u64, in64, out64 };

struct RecordedCall::Member {
  Kind kind;
  const char *name;
  size_t offset;
};

struct RecordedCall::Functions {
  const char *op;
  size_t bytes;
  std::vector<Member> members;
  flydsl_aot_status (*query)(flydsl_aot_handle *, const void *, flydsl_aot_query_result *);
  flydsl_aot_status (*explain)(flydsl_aot_handle *, const void *, flydsl_aot_candidate_callback,
                               void *);
  flydsl_aot_status (*call)(flydsl_aot_handle *, const void *);
  void (*set_workspace)(void *params, void *data, uint64_t bytes);
};

namespace {

template <class Params>
void set_workspace_of(void *params, void *data, uint64_t bytes) {
  if constexpr (requires(Params p) { p.workspace; }) {
    static_cast<Params *>(params)->workspace = data;
    static_cast<Params *>(params)->workspace_bytes = bytes;
  }
}

const std::vector<RecordedCall::Functions> &all_functions() {
#define FLYDSL_MEMBER(kind, member) {Kind::kind, #member, offsetof(Params, member)},
#define FLYDSL_FUNCTIONS(name, fields)                                                           \
  [] {                                                                                           \
    using Params = flydsl_aot_##name##_params;                                                   \
    return RecordedCall::Functions{                                                              \
        #name,                                                                                   \
        sizeof(Params),                                                                          \
        {fields(FLYDSL_MEMBER)},                                                                 \
        [](flydsl_aot_handle *handle, const void *params, flydsl_aot_query_result *result) {     \
          return flydsl_aot_##name##_query(handle, static_cast<const Params *>(params), result); \
        },                                                                                       \
        [](flydsl_aot_handle *handle, const void *params, flydsl_aot_candidate_callback callback,  \
           void *user) {                                                                         \
          return flydsl_aot_##name##_explain(handle, static_cast<const Params *>(params),        \
                                             callback, user);                                    \
        },                                                                                       \
        [](flydsl_aot_handle *handle, const void *params) {                                      \
          return flydsl_aot_##name(handle, static_cast<const Params *>(params), nullptr);        \
        },                                                                                       \
        set_workspace_of<Params>};                                                               \
  }(),
  static const std::vector<RecordedCall::Functions> all = {FLYDSL_AOT_OPERATORS(FLYDSL_FUNCTIONS)};
#undef FLYDSL_FUNCTIONS
#undef FLYDSL_MEMBER
  return all;
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

template <class Number>
bool read_number(const std::string &text, Number *value) {
  const char *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end;
}

bool read_dtype(const std::string &name, flydsl_aot_dtype *dtype) {
  for (*dtype = 1; *dtype < 64; ++*dtype)
    if (name == flydsl_aot_dtype_name(*dtype)) return true;
  return false;
}

bool read_sizes(const std::string &text, int64_t *numbers, int32_t *count) {
  const std::vector<std::string> parts = split(text, 'x');
  if (parts.empty() || parts.size() > FLYDSL_AOT_MAX_RANK) return false;
  *count = static_cast<int32_t>(parts.size());
  for (size_t i = 0; i < parts.size(); ++i)
    if (!read_number(parts[i], &numbers[i]) || numbers[i] < 0) return false;
  return true;
}

// "bf16:2x3:3x1:256@k"
bool read_tensor(const std::string &text, flydsl_aot_tensor *tensor, CallBuffer *buffer) {
  const size_t at = text.find('@');
  if (at != std::string::npos) buffer->alias = text.substr(at + 1);
  const std::vector<std::string> parts = split(text.substr(0, at), ':');
  int32_t strides = 0;
  if (parts.size() != 4 || !read_dtype(parts[0], &tensor->dtype) ||
      !read_sizes(parts[1], tensor->sizes, &tensor->rank) ||
      !read_sizes(parts[2], tensor->strides, &strides) || strides != tensor->rank ||
      !read_number(parts[3], &buffer->alignment) || buffer->alignment == 0 ||
      buffer->alignment > 256 || (buffer->alignment & (buffer->alignment - 1)) != 0)
    return false;
  uint64_t elements = 1;
  for (int axis = 0; axis < tensor->rank; ++axis) {
    const auto size = static_cast<uint64_t>(tensor->sizes[axis]);
    if (size == 0) return buffer->bytes = 0, true;
    uint64_t step = 0;
    if (__builtin_mul_overflow(size - 1, static_cast<uint64_t>(tensor->strides[axis]), &step) ||
        __builtin_add_overflow(elements, step, &elements))
      return false;
  }
  return !__builtin_mul_overflow(elements, uint64_t{flydsl_aot_dtype_bytes(tensor->dtype)},
                                 &buffer->bytes);
}

bool read_member(Kind kind, const std::string &value, void *at, CallBuffer *buffer) {
  switch (kind) {
    case Kind::tensor:
      buffer->tensor = static_cast<flydsl_aot_tensor *>(at);
      buffer->pointer = &buffer->tensor->data;
      return read_tensor(value, buffer->tensor, buffer);
    case Kind::f32:
      return read_number(value, static_cast<float *>(at));
    case Kind::i32:
      return read_number(value, static_cast<int32_t *>(at));
    case Kind::u32:
      return read_number(value, static_cast<uint32_t *>(at));
    case Kind::i64:
      return read_number(value, static_cast<int64_t *>(at));
    case Kind::u64:
      return read_number(value, static_cast<uint64_t *>(at));
    case Kind::in64:
    case Kind::out64:
      buffer->pointer = static_cast<void **>(at);
      buffer->bytes = sizeof(uint64_t);
      return value == "device";
  }
  return false;
}

}  // namespace

RecordedCall::RecordedCall(const std::string &where, const std::string &op, const std::string &text)
    : op_(op), functions_(nullptr) {
  for (const Functions &functions : all_functions())
    if (op == functions.op) functions_ = &functions;
  if (!functions_) bad_input(where + ": operator '" + op + "' is unknown");
  params_ = std::make_unique<uint64_t[]>(functions_->bytes / sizeof(uint64_t) + 1);
  const auto bytes = static_cast<uint32_t>(functions_->bytes);
  std::memcpy(params_.get(), &bytes, sizeof bytes);  // struct_size is the first member of all
  size_t next = 0;                                   // members come in the list's order
  for (const std::string &part : split(text, ' ')) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const std::vector<Member> &members = functions_->members;
    while (next < members.size() && name != members[next].name) ++next;
    if (equals == std::string::npos || next == members.size())
      bad_input(where + ": '" + part + "' is no member of " + op +
                " in this version, or not in its place");
    const Member &member = members[next++];
    CallBuffer buffer{name, nullptr, nullptr, "", 0, 256};
    auto *at = reinterpret_cast<unsigned char *>(params_.get()) + member.offset;
    if (!read_member(member.kind, part.substr(equals + 1), at, &buffer))
      bad_input(where + ": '" + part + "' is not what fields.h says of such a member");
    bool known = buffer.alias.empty();
    for (const CallBuffer &before : buffers_) known = known || before.member == buffer.alias;
    if (!known) bad_input(where + ": '" + part + "': no such tensor comes before it");
    if (buffer.pointer) buffers_.push_back(buffer);
  }
}

flydsl_aot_status RecordedCall::query(flydsl_aot_handle *handle,
                                      flydsl_aot_query_result *result) const {
  return functions_->query(handle, params_.get(), result);
}
flydsl_aot_status RecordedCall::explain(flydsl_aot_handle *handle,
                                        flydsl_aot_candidate_callback callback, void *user) const {
  return functions_->explain(handle, params_.get(), callback, user);
}
flydsl_aot_status RecordedCall::launch(flydsl_aot_handle *handle) const {
  return functions_->call(handle, params_.get());
}
void RecordedCall::set_workspace(void *data, uint64_t bytes) {
  functions_->set_workspace(params_.get(), data, bytes);
}

const flydsl_aot_tensor *RecordedCall::tensor(const std::string &member) const {
  for (const CallBuffer &buffer : buffers_)
    if (buffer.member == member) return buffer.tensor;
  return nullptr;
}

int64_t RecordedCall::number(const std::string &name) const {
  for (const Member &member : functions_->members) {
    if (name != member.name || member.kind != Kind::i64) continue;
    int64_t value;
    std::memcpy(&value, reinterpret_cast<const unsigned char *>(params_.get()) + member.offset,
                sizeof value);
    return value;
  }
  return 0;
}

}  // namespace flydsl::tools
