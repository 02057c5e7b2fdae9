// Calls as text (include/flydsl_aot/fields.h) back into parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flydsl_aot/flydsl_aot.h"

namespace flydsl::tools {

// A tensor or a number in device memory that a call reads or writes; its memory is still to be found.
struct CallBuffer {
  std::string member;         // "epilogue.aux"
  flydsl_aot_tensor *tensor;  // null: `pointer` is one 64-bit number
  void **pointer;             // where the address is to be put
  std::string alias;          // the member whose memory it shares, "" if none
  uint64_t bytes = 0;         // from its first to its last element
  uint64_t alignment = 256;   // power of two that the address had, and no greater one up to 256
};

// The parameters of one call of any operator.
class RecordedCall {
 public:
  // Throws ToolError: `where` begins the message.
  RecordedCall(const std::string &where, const std::string &op, const std::string &text);

  flydsl_aot_status query(flydsl_aot_handle *handle, flydsl_aot_query_result *result) const;
  flydsl_aot_status explain(flydsl_aot_handle *handle, flydsl_aot_candidate_callback callback,
                            void *user) const;
  flydsl_aot_status launch(flydsl_aot_handle *handle) const;  // on the null stream
  void set_workspace(void *data, uint64_t bytes);  // of an operator that has none: nothing
  std::vector<CallBuffer> &buffers() { return buffers_; }
  const std::string &op() const { return op_; }
  // The tensor of a member, null if it is absent.
  const flydsl_aot_tensor *tensor(const std::string &member) const;
  int64_t number(const std::string &member) const;

  struct Member;
  struct Functions;

 private:
  std::string op_;
  const Functions *functions_;
  std::unique_ptr<uint64_t[]> params_;
  std::vector<CallBuffer> buffers_;
};

}  // namespace flydsl::tools
