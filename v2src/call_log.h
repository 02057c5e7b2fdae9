// One CSV row for each call while FLYDSL_AOT_VERBOSE asks for it (include/flydsl_aot/library.h states the columns).
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "flydsl_aot/fields.h"
#include "flydsl_aot/flydsl_aot.h"
#include "src/archive/reader.h"
#include "src/status/status.h"
#include "v2src/struct_size.h"

namespace flydsl {

// The members of a call as text, as fields.h says.
class CallText {
 public:
  void tensor(const char *member, const flydsl_aot_tensor &tensor);
  void number(const char *member, float value);
  template <class Integer>
  requires std::is_integral_v<Integer>
  void number(const char *member, Integer value) {
    if (value != 0) add(member, std::to_string(value));
  }
  void pointer(const char *member, const void *value);
  const std::string &text() const { return text_; }

 private:
  void add(const char *member, const std::string &value);

  std::string text_;
  std::vector<std::pair<const char *, const void *>> addresses_;  // of the tensors before
};

// What `fields.h` lists of the operator with these parameters.
template <class Params>
struct Fields;
#define FLYDSL_AOT_VISIT_tensor(member) text.tensor(#member, params.member);
#define FLYDSL_AOT_VISIT_f32(member) text.number(#member, params.member);
#define FLYDSL_AOT_VISIT_i32(member) text.number(#member, params.member);
#define FLYDSL_AOT_VISIT_u32(member) text.number(#member, params.member);
#define FLYDSL_AOT_VISIT_i64(member) text.number(#member, params.member);
#define FLYDSL_AOT_VISIT_u64(member) text.number(#member, params.member);
#define FLYDSL_AOT_VISIT_in64(member) text.pointer(#member, params.member);
#define FLYDSL_AOT_VISIT_out64(member) text.pointer(#member, params.member);
#define FLYDSL_AOT_VISIT(kind, member) FLYDSL_AOT_VISIT_##kind(member)
#define FLYDSL_AOT_FIELDS_OF(name, fields)                                        \
  template <>                                                                     \
  struct Fields<flydsl_aot_##name##_params> {                                     \
    static constexpr const char *kOperator = #name;                               \
    static void write(const flydsl_aot_##name##_params &params, CallText &text) { \
      fields(FLYDSL_AOT_VISIT)                                                    \
    }                                                                             \
  };
FLYDSL_AOT_OPERATORS(FLYDSL_AOT_FIELDS_OF)
#undef FLYDSL_AOT_FIELDS_OF
#undef FLYDSL_AOT_VISIT

class CallLog {
 public:
  // `where`: "stderr", or a file that rows are added to. Errors: INVALID_ARGUMENT.
  static Status open(const char *where, std::unique_ptr<CallLog> *log);
  ~CallLog();
  CallLog(const CallLog &) = delete;
  CallLog &operator=(const CallLog &) = delete;

  // Runs `call`, which launches the kernels that note() hears of, and writes its row if it ends well.
  // What `params` read is there then.
  template <class Params, class Call>
  Status record(const archive::Archive &archive, const ReadStruct<Params> &params, Call call) const {
    Recording recording;
    FLYDSL_RETURN_IF_ERROR(call());
    recording.stop();
    CallText text;
    Fields<Params>::write(params.get(), text);
    write(archive, Fields<Params>::kOperator, text.text(), recording);
    return {};
  }
  // The kernel of the thread's call that is being recorded, and why it was chosen.
  static void note(uint32_t entry, const std::string &tuning_row);

 private:
  class Recording {
   public:
    Recording();
    ~Recording();
    void stop();

    std::vector<uint32_t> entries;
    std::string tuning_row;
    int64_t begin_ns, host_ns = 0;

   private:
    Recording *before_;
  };
  explicit CallLog(int descriptor) : descriptor_(descriptor) {}
  void write(const archive::Archive &archive, const char *op, const std::string &problem,
             const Recording &recording) const;

  static thread_local Recording *current_;
  int descriptor_;
};

}  // namespace flydsl
