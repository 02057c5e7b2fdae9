// What attention_backward refuses: the list of include/flydsl_aot/attention_backward.h, and of attention_forward.h what
// that refers to.
#include <cmath>
#include <functional>
#include <span>

#include "test/v2src/attention_backward_fixture.h"

namespace flydsl::test {
namespace {

using P = BackwardParams;
constexpr int64_t kLimit = int64_t{1} << 30;

// A change of a valid problem, the status it must give, and what the message must say.
struct BadInput {
  const char *name;
  flydsl_aot_status status;
  std::vector<const char *> parts;
  std::function<void(P &)> edit;
  bool call_only = false;  // a query cannot see it
};

void of_type(P &p, flydsl_aot_dtype dtype) {
  for (flydsl_aot_tensor *tensor : {&p.q, &p.k, &p.v, &p.out, &p.dout, &p.dq, &p.dk, &p.dv})
    tensor->dtype = dtype;
}
void with_bias(P &p) {
  p.bias = fp32(kTerm, {2, 6, 300, 500});
  p.dbias = fp32(kDterm, {2, 6, 300, 500});
}
void with_sinks(P &p) {
  p.sinks = fp32(kTerm, {6});
  p.dsinks = fp32(kDterm, {6});
}

const BadInput kTypes[] = {
    {"fp32",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is fp32", "fp16, bf16"},
     [](P &p) { of_type(p, FLYDSL_AOT_FP32); }},
    {"fp64",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is fp64"},
     [](P &p) { of_type(p, FLYDSL_AOT_FP64); }},
    {"e4m3",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is e4m3"},
     [](P &p) { of_type(p, FLYDSL_AOT_E4M3); }},
    {"no_type", FLYDSL_AOT_INVALID_DTYPE, {"number 99"}, [](P &p) { of_type(p, 99); }},
    {"k", FLYDSL_AOT_INVALID_DTYPE, {"k is fp16", "q's dtype"}, [](P &p) { p.k.dtype = 3; }},
    {"v", FLYDSL_AOT_INVALID_DTYPE, {"v is fp16"}, [](P &p) { p.v.dtype = 3; }},
    {"out", FLYDSL_AOT_INVALID_DTYPE, {"out is fp32"}, [](P &p) { p.out.dtype = 2; }},
    {"dout", FLYDSL_AOT_INVALID_DTYPE, {"dout is fp32"}, [](P &p) { p.dout.dtype = 2; }},
    {"dq", FLYDSL_AOT_INVALID_DTYPE, {"dq is fp32"}, [](P &p) { p.dq.dtype = 2; }},
    {"dk", FLYDSL_AOT_INVALID_DTYPE, {"dk is fp32"}, [](P &p) { p.dk.dtype = 2; }},
    {"dv", FLYDSL_AOT_INVALID_DTYPE, {"dv is fp16"}, [](P &p) { p.dv.dtype = 3; }},
    {"lse", FLYDSL_AOT_INVALID_DTYPE, {"lse is bf16", "fp32"}, [](P &p) { p.lse.dtype = 4; }},
    {"bias",
     FLYDSL_AOT_INVALID_DTYPE,
     {"bias is fp16", "fp32 or, as out, bf16"},
     [](P &p) {
       with_bias(p);
       p.bias.dtype = FLYDSL_AOT_FP16;
     }},
    {"dbias",
     FLYDSL_AOT_INVALID_DTYPE,
     {"dbias is fp16", "fp32 or, as q, bf16"},
     [](P &p) {
       with_bias(p);
       p.dbias.dtype = FLYDSL_AOT_FP16;
     }},
    {"dsinks",
     FLYDSL_AOT_INVALID_DTYPE,
     {"dsinks is bf16", "fp32"},
     [](P &p) {
       with_sinks(p);
       p.dsinks.dtype = FLYDSL_AOT_BF16;
     }},
    {"lengths",
     FLYDSL_AOT_INVALID_DTYPE,
     {"seqused_k is int64", "int32"},
     [](P &p) {
       p.seqused_k = lengths(2);
       p.seqused_k.dtype = FLYDSL_AOT_INT64;
     }},
};

const BadInput kShapes[] = {
    {"no_q", FLYDSL_AOT_INVALID_SHAPE, {"q is absent", "lse and dout"}, [](P &p) { p.q = {}; }},
    {"no_lse", FLYDSL_AOT_INVALID_SHAPE, {"lse is absent"}, [](P &p) { p.lse = {}; }},
    {"no_out", FLYDSL_AOT_INVALID_SHAPE, {"out is absent"}, [](P &p) { p.out = {}; }},
    {"no_dout", FLYDSL_AOT_INVALID_SHAPE, {"dout is absent"}, [](P &p) { p.dout = {}; }},
    {"head_dim",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"D = 577", "576/512"},
     [](P &p) { p.q.sizes[3] = p.k.sizes[3] = p.dq.sizes[3] = p.dk.sizes[3] = 577; }},
    {"head_dim_v",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"Dv = 513"},
     [](P &p) { p.v.sizes[3] = p.out.sizes[3] = p.dout.sizes[3] = p.dv.sizes[3] = 513; }},
    {"no_head_dim",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"D = 0"},
     [](P &p) { p.q.sizes[3] = p.k.sizes[3] = p.dq.sizes[3] = p.dk.sizes[3] = 0; }},
    {"heads",
     FLYDSL_AOT_INVALID_SHAPE,
     {"Hq = 6", "Hkv = 4", "multiple"},
     [](P &p) { p.k.sizes[1] = p.v.sizes[1] = p.dk.sizes[1] = p.dv.sizes[1] = 4; }},
    {"batches",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q and k disagree", "B = 2"},
     [](P &p) { p.k.sizes[0] = p.v.sizes[0] = p.dk.sizes[0] = p.dv.sizes[0] = 3; }},
    {"dq",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q and dq disagree", "Sq = 299"},
     [](P &p) { p.dq.sizes[2] = 299; }},
    {"dk", FLYDSL_AOT_INVALID_SHAPE, {"k and dk disagree"}, [](P &p) { p.dk.sizes[1] = 6; }},
    {"dv", FLYDSL_AOT_INVALID_SHAPE, {"v and dv disagree"}, [](P &p) { p.dv.sizes[3] = 32; }},
    {"dout",
     FLYDSL_AOT_INVALID_SHAPE,
     {"out and dout disagree"},
     [](P &p) { p.dout.sizes[3] = 32; }},
    {"out",
     FLYDSL_AOT_INVALID_SHAPE,
     {"v and out disagree"},
     [](P &p) { p.out.sizes[3] = p.dout.sizes[3] = 32; }},
    {"lse", FLYDSL_AOT_INVALID_SHAPE, {"q and lse disagree"}, [](P &p) { p.lse.sizes[2] = 301; }},
    {"rank_of_dq", FLYDSL_AOT_INVALID_SHAPE, {"dq has rank 3"}, [](P &p) { p.dq.rank = 3; }},
    {"padded_lse",
     FLYDSL_AOT_INVALID_SHAPE,
     {"lse has max_seqlen_q = 300", "400"},
     [](P &p) {
       pack_backward(p);
       p.lse = fp32(kLse, {2, 6, 300});
     }},
    {"packed_lse",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q and lse disagree"},
     [](P &p) {
       pack_backward(p);
       p.lse = fp32(kLse, {6, 599});
     }},
    {"packed_dq",
     FLYDSL_AOT_INVALID_SHAPE,
     {"dq has rank 4", "(Hq, total_q, D)"},
     [](P &p) {
       pack_backward(p);
       p.dq = bf16(kDq, {2, 6, 300, 64});
     }},
    {"longest",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"max_seqlen_q is 7", "0 without"},
     [](P &p) { p.max_seqlen_q = 7; }},
    {"nothing_wanted",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"all absent"},
     [](P &p) { p.dq = p.dk = p.dv = {}; }},
    {"dbias_of_no_bias",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"there is no bias"},
     [](P &p) {
       p.dbias = fp32(kDterm, {2, 6, 300, 500});
     }},
    {"dsinks_of_no_sinks",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"there are no sinks"},
     [](P &p) { p.dsinks = fp32(kDterm, {6}); }},
    {"sum_over_what_bias_tells_apart",
     FLYDSL_AOT_INVALID_SHAPE,
     {"dbias has Hq = 1", "bias has 6", "broadcast"},
     [](P &p) {
       with_bias(p);
       p.dbias = fp32(kDterm, {2, 1, 300, 500});
     }},
    {"dbias",
     FLYDSL_AOT_INVALID_SHAPE,
     {"dbias has Sk = 499", "500"},
     [](P &p) {
       with_bias(p);
       p.dbias.sizes[3] = 499;
     }},
    {"dsinks",
     FLYDSL_AOT_INVALID_SHAPE,
     {"dsinks has Hq = 2", "6"},
     [](P &p) {
       with_sinks(p);
       p.dsinks.sizes[0] = 2;
     }},
};

const BadInput kStrides[] = {
    {"negative",
     FLYDSL_AOT_INVALID_STRIDE,
     {"dout has stride -64"},
     [](P &p) { p.dout.strides[2] = -64; }},
    {"last_axis",
     FLYDSL_AOT_INVALID_STRIDE,
     {"out has stride 2", "must be 1"},
     [](P &p) { p.out.strides[3] = 2; }},
    {"last_axis_of_dk",
     FLYDSL_AOT_INVALID_STRIDE,
     {"dk has stride 2"},
     [](P &p) { p.dk.strides[3] = 2; }},
    {"broadcast_dk",
     FLYDSL_AOT_INVALID_STRIDE,
     {"dk overlaps itself"},
     [](P &p) { p.dk.strides[1] = 0; }},
    {"broadcast_dbias",
     FLYDSL_AOT_INVALID_STRIDE,
     {"dbias overlaps itself"},
     [](P &p) {
       with_bias(p);
       p.dbias.strides[0] = 0;
     }},
};

const BadInput kMemory[] = {
    {"keys",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"Sk = 1073741825", "2^30"},
     [](P &p) { p.k.sizes[2] = p.v.sizes[2] = p.dk.sizes[2] = p.dv.sizes[2] = kLimit + 1; }},
    {"row_tiles",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"2^31"},
     [](P &p) {
       for (flydsl_aot_tensor *t : {&p.q, &p.out, &p.dout, &p.dq, &p.lse})
         t->sizes[2] = kLimit, t->sizes[0] = 64;
       for (flydsl_aot_tensor *t : {&p.k, &p.v, &p.dk, &p.dv}) t->sizes[0] = 64;
     }},
    {"key_tiles",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"2^31"},
     [](P &p) {
       for (flydsl_aot_tensor *t : {&p.k, &p.v, &p.dk, &p.dv})
         t->sizes[2] = kLimit, t->sizes[0] = 64;
       for (flydsl_aot_tensor *t : {&p.q, &p.out, &p.dout, &p.dq, &p.lse}) t->sizes[0] = 64;
     }},
    {"tiles_of_large_head_dims",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"tiles of 32 rows", "2^31"},
     [](P &p) {
       for (flydsl_aot_tensor *t : {&p.q, &p.k, &p.dq, &p.dk}) t->sizes[3] = 257;
       for (flydsl_aot_tensor *t : {&p.q, &p.out, &p.dout, &p.dq, &p.lse})
         t->sizes[2] = kLimit, t->sizes[0] = 12;
       for (flydsl_aot_tensor *t : {&p.k, &p.v, &p.dk, &p.dv}) t->sizes[0] = 12;
     }},
    {"alignment",
     FLYDSL_AOT_INVALID_POINTER,
     {"dv has data", "2 bytes"},
     [](P &p) { p.dv.data = place(kDv, 1); }},
    {"alignment_of_dsinks",
     FLYDSL_AOT_INVALID_POINTER,
     {"dsinks has data", "4 bytes"},
     [](P &p) {
       with_sinks(p);
       p.dsinks.data = place(kDterm, 2);
     }},
    {"null",
     FLYDSL_AOT_INVALID_POINTER,
     {"dout has data NULL"},
     [](P &p) { p.dout.data = nullptr; },
     true},
    {"dq_in_place",
     FLYDSL_AOT_INVALID_POINTER,
     {"dq overlaps q"},
     [](P &p) { p.dq.data = p.q.data; },
     true},
    {"dq_over_dout",
     FLYDSL_AOT_INVALID_POINTER,
     {"dq overlaps dout"},
     [](P &p) { p.dq.data = p.dout.data; },
     true},
    {"dk_over_dv",
     FLYDSL_AOT_INVALID_POINTER,
     {"dk overlaps dv"},
     [](P &p) { p.dv.data = p.dk.data; },
     true},
    {"dbias_in_place",
     FLYDSL_AOT_INVALID_POINTER,
     {"dbias overlaps bias"},
     [](P &p) {
       with_bias(p);
       p.dbias.data = p.bias.data;
     },
     true},
    {"dq_over_lengths",
     FLYDSL_AOT_INVALID_POINTER,
     {"dq overlaps seqused_q"},
     [](P &p) {
       p.seqused_q = lengths(2);
       p.dq.data = p.seqused_q.data;
     },
     true},
};

const BadInput kNumbersWithoutMeaning[] = {
    {"scale", FLYDSL_AOT_INVALID_SCALE, {"scale is nan"}, [](P &p) { p.scale = NAN; }},
    {"softcap", FLYDSL_AOT_INVALID_ARGUMENT, {"softcap is -1"}, [](P &p) { p.softcap = -1; }},
    {"dropout", FLYDSL_AOT_INVALID_ARGUMENT, {"dropout_p is 1"}, [](P &p) { p.dropout_p = 1; }},
    {"seed",
     FLYDSL_AOT_INVALID_POINTER,
     {"dropout_seed_device", "8 bytes"},
     [](P &p) { p.dropout_seed_device = static_cast<const uint64_t *>(place(kTerm, 4)); }},
    {"bound",
     FLYDSL_AOT_INVALID_MASK,
     {"mask.left is -2"},
     [](P &p) {
       p.mask = {-2, 0, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0};
     }},
    {"anchor",
     FLYDSL_AOT_INVALID_MASK,
     {"without an anchor"},
     [](P &p) {
       p.mask = {-1, 0, FLYDSL_AOT_ANCHOR_NONE, 0};
     }},
    {"size_of_struct",
     FLYDSL_AOT_INVALID_STRUCT_SIZE,
     {"params.struct_size is 16"},
     [](P &p) { p.struct_size = 16; }},
};

class AttentionBackwardRefusals : public AttentionBackwardTest {
 protected:
  // Call, query, explain and prefetch refuse every row, and nothing is launched.
  void expect_refused(std::span<const BadInput> rows) {
    for (const BadInput &row : rows) {
      SCOPED_TRACE(row.name);
      P params = valid_backward();
      row.edit(params);
      const auto call = library_.attention_backward(params, nullptr);
      EXPECT_EQ(call.code(), row.status) << call.message();
      EXPECT_EQ(call.message().rfind("flydsl_aot_attention_backward: ", 0), 0u) << call.message();
      for (const char *part : row.parts)
        EXPECT_NE(call.message().find(part), std::string::npos) << part << " | " << call.message();
      flydsl_aot_query_result result;
      const flydsl_aot_status expected = row.call_only ? FLYDSL_AOT_OK : row.status;
      EXPECT_EQ(library_.attention_backward_query(params, &result).code(), expected);
      EXPECT_EQ(result.status, expected);
      EXPECT_EQ(std::strlen(result.reason) == 0, row.call_only) << result.reason;
      std::vector<flydsl_aot::Candidate> candidates;
      EXPECT_EQ(library_.attention_backward_explain(params, &candidates).code(), expected);
      EXPECT_EQ(candidates.empty(), !row.call_only);
      if (!row.call_only) {
        EXPECT_EQ(library_.attention_backward_prefetch(params).code(), expected);
      }
    }
    EXPECT_EQ(fake_->launches, 0);
    EXPECT_EQ(fake_->loads, 0);
    EXPECT_EQ(fake_->peek_at_last_error(), 0);
  }
};

TEST_F(AttentionBackwardRefusals, OfTheHeader) {
  expect_refused(kTypes);
  expect_refused(kShapes);
  expect_refused(kStrides);
  expect_refused(kMemory);
  expect_refused(kNumbersWithoutMeaning);
}

// What looks alike and is no mistake.
TEST_F(AttentionBackwardRefusals, NotOf) {
  const std::function<void(P &)> edits[] = {
      [](P &p) { p.dout.strides[3] = 0; },
      [](P &p) { p.dout.strides[3] = 3; },
      [](P &p) { p.out.strides[0] = 0; },  // an input
      [](P &p) {
        with_bias(p);  // a bias that is one for all heads, and the gradient of each head or of all
        p.bias.strides[1] = 0;
      },
      [](P &p) {
        with_bias(p);
        p.bias.strides[1] = 0;
        p.dbias = fp32(kDterm, {2, 1, 300, 500});
      },
      [](P &p) {
        with_bias(p);
        p.bias = fp32(kTerm, {1, 1, 300, 1});
      },
      [](P &p) { p.dbias.data = at(1), p.dbias.dtype = 99; },  // absent
      [](P &p) { p.v.data = p.k.data; },
  };
  for (const auto &edit : edits) {
    SCOPED_TRACE(&edit - edits);
    P params = valid_backward();
    edit(params);
    params.workspace_bytes = workspace_of(params);
    EXPECT_GE(launched(params).size(), 3u);
  }
}

}  // namespace
}  // namespace flydsl::test
