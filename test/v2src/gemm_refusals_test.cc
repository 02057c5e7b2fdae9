// What gemm refuses: the list of include/flydsl_aot/gemm.h.
#include <cmath>
#include <functional>
#include <span>

#include "test/v2src/gemm_fixture.h"

namespace flydsl::test {
namespace {

using P = GemmParams;
constexpr int64_t kLimit = int64_t{1} << 30;

// A change of a valid problem that has everything, the status it must give, and what the message must say.
struct BadInput {
  const char *name;
  flydsl_aot_status status;
  std::vector<const char *> parts;
  std::function<void(P &)> edit;
  bool call_only = false;  // a query cannot see it
};

void batched(P &p) {
  p = valid_gemm();
  p.a = gemm_tensor(kA, FLYDSL_AOT_BF16, {5, 300, 100});
  p.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {5, 300, 200});
}

const BadInput kTypes[] = {
    {"a_fp64",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"a is fp64", "fp32, fp16, bf16, e4m3, e5m2"},
     [](P &p) { p.a.dtype = FLYDSL_AOT_FP64; }},
    {"a_fnuz",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"a is e4m3_fnuz"},
     [](P &p) { p.a.dtype = FLYDSL_AOT_E4M3_FNUZ; }},
    {"b_int32",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"b is int32"},
     [](P &p) { p.b.dtype = FLYDSL_AOT_INT32; }},
    {"d_e2m1",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"d is e2m1"},
     [](P &p) { p.d.dtype = FLYDSL_AOT_E2M1X2; }},
    {"unknown",
     FLYDSL_AOT_INVALID_DTYPE,
     {"a has the unknown dtype number 99"},
     [](P &p) { p.a.dtype = 99; }},
    {"mixed",
     FLYDSL_AOT_INVALID_DTYPE,
     {"a is e4m3, but b is bf16"},
     [](P &p) { p.b.dtype = FLYDSL_AOT_BF16; }},
    {"mixed_16_bit",
     FLYDSL_AOT_INVALID_DTYPE,
     {"a is fp16, but b is bf16"},
     [](P &p) {
       p = valid_gemm();
       p.a.dtype = FLYDSL_AOT_FP16;
     }},
    {"c",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"c is e4m3", "fp32, fp16, bf16"},
     [](P &p) { p.c.dtype = FLYDSL_AOT_E4M3; }},
    {"residual",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"epilogue.residual is e5m2"},
     [](P &p) { p.epilogue.residual.dtype = FLYDSL_AOT_E5M2; }},
    {"aux",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"epilogue.aux is e5m2"},
     [](P &p) { p.epilogue.aux.dtype = FLYDSL_AOT_E5M2; }},
    {"bias_m",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"epilogue.bias_m is int32"},
     [](P &p) { p.epilogue.bias_m.dtype = FLYDSL_AOT_INT32; }},
    {"bias_n",
     FLYDSL_AOT_INVALID_DTYPE,
     {"epilogue.bias_n has the unknown dtype number -1"},
     [](P &p) { p.epilogue.bias_n.dtype = -1; }},
    {"a_descale",
     FLYDSL_AOT_INVALID_DTYPE,
     {"a_descale is bf16", "fp32"},
     [](P &p) { p.a_descale.dtype = FLYDSL_AOT_BF16; }},
    {"sum_of_e4m3",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"a_sum_m is given, but a is e4m3"},
     [](P &p) { p.a_sum_m = gemm_tensor(kSum, FLYDSL_AOT_FP32, {300}); }},
    {"sum_in_e5m2",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"d_sum_m is e5m2"},
     [](P &p) {
       p = valid_gemm();
       p.d_sum_m = gemm_tensor(kSum, FLYDSL_AOT_E5M2, {300});
     }},
    {"descale_of_bf16",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"b_descale is given, but b is bf16"},
     [](P &p) {
       p = valid_gemm();
       p.b_descale = gemm_tensor(kBDescale, FLYDSL_AOT_FP32, {1});
     }},
    {"scale_of_bf16",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"d_scale is given, but d is bf16"},
     [](P &p) { p.d.dtype = FLYDSL_AOT_BF16; }},
};

const BadInput kShapes[] = {
    {"no_a", FLYDSL_AOT_INVALID_SHAPE, {"a is absent", "a, b and d"}, [](P &p) { p.a = {}; }},
    {"no_b", FLYDSL_AOT_INVALID_SHAPE, {"b is absent"}, [](P &p) { p.b = {}; }},
    {"no_d", FLYDSL_AOT_INVALID_SHAPE, {"d is absent"}, [](P &p) { p.d = {}; }},
    {"no_c", FLYDSL_AOT_INVALID_SHAPE, {"c is absent", "beta is 0.5"}, [](P &p) { p.c = {}; }},
    {"a_rank", FLYDSL_AOT_INVALID_SHAPE, {"a has rank 4", "2 or 3"}, [](P &p) { p.a.rank = 4; }},
    {"k",
     FLYDSL_AOT_INVALID_SHAPE,
     {"a has K = 100", "b has K = 101"},
     [](P &p) { p.b.sizes[0] = 101; }},
    {"d_rows",
     FLYDSL_AOT_INVALID_SHAPE,
     {"d has size 301 on axis 0", "300"},
     [](P &p) { p.d.sizes[0] = 301; }},
    {"d_columns",
     FLYDSL_AOT_INVALID_SHAPE,
     {"d has size 100 on axis 1", "200"},
     [](P &p) { p.d.sizes[1] = 100; }},
    {"negative", FLYDSL_AOT_INVALID_SHAPE, {"a has size -1"}, [](P &p) { p.a.sizes[0] = -1; }},
    {"d_batched",
     FLYDSL_AOT_INVALID_SHAPE,
     {"d has rank 3", "neither a nor b is batched"},
     [](P &p) {
       p.d = gemm_tensor(kD, FLYDSL_AOT_E4M3, {1, 300, 200});
     }},
    {"sum_of_other_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"d_sum_n has size 300 on axis 0", "200"},
     [](P &p) {
       p = valid_gemm();
       p.d_sum_n = gemm_tensor(kSum, FLYDSL_AOT_FP32, {300});
     }},
    {"sum_of_one_batch",
     FLYDSL_AOT_INVALID_SHAPE,
     {"d_sum_n has batch = 1", "5"},
     [](P &p) {
       batched(p);
       p.d_sum_n = gemm_tensor(kSum, FLYDSL_AOT_FP32, {1, 200});
     }},
    {"d_not_batched",
     FLYDSL_AOT_INVALID_SHAPE,
     {"d has rank 2", "a or b is batched"},
     [](P &p) {
       batched(p);
       p.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {300, 200});
     }},
    {"batches",
     FLYDSL_AOT_INVALID_SHAPE,
     {"a has size 5 on axis 0", "4 or 1"},
     [](P &p) {
       batched(p);
       p.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {4, 300, 200});
     }},
    {"aux_batches",
     FLYDSL_AOT_INVALID_SHAPE,
     {"epilogue.aux has size 1 on axis 0", "5"},
     [](P &p) {
       batched(p);
       p.epilogue.aux = gemm_tensor(kAux, FLYDSL_AOT_BF16, {1, 300, 200});
     }},
    {"c",
     FLYDSL_AOT_INVALID_SHAPE,
     {"c has size 1 on axis 0", "300"},
     [](P &p) { p.c.sizes[0] = 1; }},
    {"residual",
     FLYDSL_AOT_INVALID_SHAPE,
     {"epilogue.residual has size 1 on axis 1"},
     [](P &p) { p.epilogue.residual.sizes[1] = 1; }},
    {"bias_m",
     FLYDSL_AOT_INVALID_SHAPE,
     {"epilogue.bias_m has size 1", "300"},
     [](P &p) { p.epilogue.bias_m.sizes[0] = 1; }},
    {"bias_n",
     FLYDSL_AOT_INVALID_SHAPE,
     {"epilogue.bias_n has size 300", "200"},
     [](P &p) { p.epilogue.bias_n.sizes[0] = 300; }},
    {"bias_rank",
     FLYDSL_AOT_INVALID_SHAPE,
     {"epilogue.bias_n has rank 2", "expected 1"},
     [](P &p) {
       p.epilogue.bias_n = gemm_tensor(kBiasN, FLYDSL_AOT_FP32, {1, 200});
     }},
    {"a_descale",
     FLYDSL_AOT_INVALID_SHAPE,
     {"a_descale has size 2", "300 or 1"},
     [](P &p) { p.a_descale.sizes[0] = 2; }},
    {"d_scale",
     FLYDSL_AOT_INVALID_SHAPE,
     {"d_scale has 2 elements"},
     [](P &p) { p.d_scale.sizes[0] = 2; }},
    {"m",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"M is 1073741825"},
     [](P &p) {
       p = valid_gemm();
       p.a.sizes[0] = p.d.sizes[0] = kLimit + 1;
     }},
    {"tiles",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"ceil(M / 64) * ceil(N / 64) * batch"},
     [](P &p) {
       p = valid_gemm();
       p.a.sizes[0] = p.d.sizes[0] = kLimit;
       p.b.sizes[1] = p.d.sizes[1] = 8192;
     }},
};

const BadInput kMemory[] = {
    {"negative_stride",
     FLYDSL_AOT_INVALID_STRIDE,
     {"a has stride -100"},
     [](P &p) { p.a.strides[0] = -100; }},
    {"d_overlaps_itself",
     FLYDSL_AOT_INVALID_STRIDE,
     {"d overlaps itself"},
     [](P &p) { p.d.strides[0] = 199; }},
    {"aux_overlaps_itself",
     FLYDSL_AOT_INVALID_STRIDE,
     {"epilogue.aux overlaps itself"},
     [](P &p) { p.epilogue.aux.strides[1] = 0; }},
    {"far",
     FLYDSL_AOT_INVALID_STRIDE,
     {"b has stride", "63 bits"},
     [](P &p) { p.b.strides[0] = int64_t{1} << 60; }},
    {"null",
     FLYDSL_AOT_INVALID_POINTER,
     {"b has data NULL"},
     [](P &p) { p.b.data = nullptr; },
     true},
    {"misaligned",
     FLYDSL_AOT_INVALID_POINTER,
     {"c has data", "2 bytes"},
     [](P &p) { p.c.data = gemm_place(kC, 1); }},
    {"d_over_a",
     FLYDSL_AOT_INVALID_POINTER,
     {"d overlaps a"},
     [](P &p) { p.d.data = gemm_place(kA, 500); },
     true},
    {"d_over_bias",
     FLYDSL_AOT_INVALID_POINTER,
     {"d overlaps epilogue.bias_n"},
     [](P &p) { p.d.data = p.epilogue.bias_n.data; },
     true},
    {"d_over_c",
     FLYDSL_AOT_INVALID_POINTER,
     {"d overlaps c"},  // of another type
     [](P &p) { p.c.data = p.d.data; },
     true},
    {"d_over_part_of_residual",
     FLYDSL_AOT_INVALID_POINTER,
     {"d overlaps epilogue.residual"},
     [](P &p) {
       p = valid_gemm();
       p.epilogue.residual = p.d;
       p.epilogue.residual.data = gemm_place(kD, 2);
     },
     true},
    {"aux_over_residual",
     FLYDSL_AOT_INVALID_POINTER,
     {"epilogue.aux overlaps epilogue.residual"},
     [](P &p) {
       p = valid_gemm();
       p.epilogue.aux = gemm_tensor(kAux, FLYDSL_AOT_BF16, {300, 200});
       p.epilogue.residual = p.epilogue.aux;
     },
     true},
    {"d_over_part_of_aux",
     FLYDSL_AOT_INVALID_POINTER,
     {"d overlaps epilogue.aux"},
     [](P &p) {
       p = valid_gemm();
       p.epilogue.activation = FLYDSL_AOT_ACTIVATION_GELU;
       p.epilogue.gradient = 1;
       p.epilogue.aux = p.d;
       p.epilogue.aux.data = gemm_place(kD, 2);
     },
     true},
    {"sum_over_a",
     FLYDSL_AOT_INVALID_POINTER,
     {"d_sum_n overlaps a"},
     [](P &p) {
       p = valid_gemm();
       p.d_sum_n = gemm_tensor(kA, FLYDSL_AOT_FP32, {200});
     },
     true},
    {"sum_over_d",
     FLYDSL_AOT_INVALID_POINTER,
     {"b_sum_n overlaps d"},
     [](P &p) {
       p = valid_gemm();
       p.b_sum_n = gemm_tensor(kD, FLYDSL_AOT_FP32, {200});
     },
     true},
    {"sum_over_sum",
     FLYDSL_AOT_INVALID_POINTER,
     {"a_sum_m overlaps d_sum_n"},
     [](P &p) {
       p = valid_gemm();
       p.d_sum_n = gemm_tensor(kSum, FLYDSL_AOT_FP32, {200});
       p.a_sum_m = gemm_tensor(kSum, FLYDSL_AOT_FP32, {300});
     },
     true},
    {"aux_over_d",
     FLYDSL_AOT_INVALID_POINTER,
     {"epilogue.aux overlaps d"},
     [](P &p) { p.epilogue.aux.data = p.d.data; },
     true},
};

const BadInput kNumbers[] = {
    {"alpha", FLYDSL_AOT_INVALID_SCALE, {"alpha is nan"}, [](P &p) { p.alpha = NAN; }},
    {"beta", FLYDSL_AOT_INVALID_SCALE, {"beta is inf"}, [](P &p) { p.beta = INFINITY; }},
    {"activation",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"epilogue.activation is 5", "SILU (4)"},
     [](P &p) { p.epilogue.activation = 5; }},
    {"reserved", FLYDSL_AOT_INVALID_ARGUMENT, {"reserved is 1"}, [](P &p) { p.reserved = 1; }},
    {"gradient",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"epilogue.gradient is 2", "0 or 1"},
     [](P &p) { p.epilogue.gradient = 2; }},
    {"gradient_of_none",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"epilogue.gradient is 1", "epilogue.activation is NONE"},
     [](P &p) {
       p.epilogue.gradient = 1;
       p.epilogue.activation = FLYDSL_AOT_ACTIVATION_NONE;
     }},
    {"gradient_without_aux",
     FLYDSL_AOT_INVALID_SHAPE,
     {"epilogue.aux is absent", "epilogue.gradient is 1"},
     [](P &p) {
       p.epilogue.gradient = 1;
       p.epilogue.aux = {};
     }},
    {"struct_size",
     FLYDSL_AOT_INVALID_STRUCT_SIZE,
     {"params.struct_size is 16"},
     [](P &p) { p.struct_size = 16; }},
};

class GemmRefusals : public GemmTest {
 protected:
  // Call, query, explain and prefetch refuse every row, and nothing is launched.
  void expect_refused(std::span<const BadInput> rows) {
    for (const BadInput &row : rows) {
      SCOPED_TRACE(row.name);
      P params = full_gemm();
      row.edit(params);
      const auto call = library_.gemm(params, nullptr);
      EXPECT_EQ(call.code(), row.status) << call.message();
      EXPECT_EQ(call.message().rfind("flydsl_aot_gemm: ", 0), 0u) << call.message();
      for (const char *part : row.parts)
        EXPECT_NE(call.message().find(part), std::string::npos) << part << " | " << call.message();
      flydsl_aot_query_result result;
      const flydsl_aot_status expected = row.call_only ? FLYDSL_AOT_OK : row.status;
      EXPECT_EQ(library_.gemm_query(params, &result).code(), expected);
      EXPECT_EQ(result.status, expected);
      EXPECT_EQ(std::strlen(result.reason) == 0, row.call_only) << result.reason;
      std::vector<flydsl_aot::Candidate> candidates;
      EXPECT_EQ(library_.gemm_explain(params, &candidates).code(), expected);
      EXPECT_EQ(candidates.empty(), !row.call_only);
      if (!row.call_only) {
        EXPECT_EQ(library_.gemm_prefetch(params).code(), expected);
      }
    }
    EXPECT_EQ(fake_->launches, 0);
    EXPECT_EQ(fake_->loads, 0);
    EXPECT_EQ(fake_->peek_at_last_error(), 0);
  }
};

TEST_F(GemmRefusals, OfTheHeader) {
  expect_refused(kTypes);
  expect_refused(kShapes);
  expect_refused(kMemory);
  expect_refused(kNumbers);
}

// What looks alike and is no mistake.
TEST_F(GemmRefusals, NotOf) {
  const std::function<void(P &)> edits[] = {
      [](P &p) { p.b.dtype = FLYDSL_AOT_E5M2; },
      [](P &p) { p.a.strides[0] = p.b.strides[1] = 0; },  // inputs
      [](P &p) { p.c.strides[0] = p.epilogue.residual.strides[1] = 0; },
      [](P &p) { p.a.strides[0] = 99; },
      [](P &p) {
        p.d = p.c;  // in place
        p.d_scale = {};
      },
      [](P &p) {
        p.epilogue.aux = p.c;  // C's type and place
      },
      [](P &p) {
        p.d = p.epilogue.residual;
        p.d_scale = {};
      },
      [](P &p) {
        p.epilogue.gradient = 1;  // an input: may overlap itself and others
        p.epilogue.aux.strides[0] = 0;
        p.epilogue.aux.data = p.epilogue.residual.data;
      },
      [](P &p) {
        p.epilogue.gradient = 1;
        p.d = p.epilogue.aux;
        p.d_scale = {};
      },
      [](P &p) { p.beta = 0, p.c.data = p.a.data, p.c.dtype = 99; },  // not looked at
      [](P &p) { p.b.data = p.a.data; },
  };
  for (const auto &edit : edits) {
    SCOPED_TRACE(&edit - edits);
    P params = full_gemm();
    edit(params);
    EXPECT_EQ(launched(params).size(), 1u);
  }
}

}  // namespace
}  // namespace flydsl::test
