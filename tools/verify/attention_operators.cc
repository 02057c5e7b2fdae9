#include "tools/verify/attention_operators.h"

#include <initializer_list>
#include <vector>

#include "tools/verify/attention_backward_fuzz.h"
#include "tools/verify/attention_backward_verify.h"
#include "tools/verify/attention_decode_call.h"
#include "tools/verify/attention_decode_fuzz.h"
#include "tools/verify/attention_forward_fuzz.h"
#include "tools/verify/gemm_verify.h"
#include "tools/verify/mx_quantise_case.h"
#include "tools/verify/norm_backward_verify.h"
#include "tools/verify/norm_verify.h"
#include "tools/verify/scaled_gemm_verify.h"
#include "tools/verify/grouped_gemm_verify.h"
#include "tools/verify/shipped_cases.h"
#include "tools/verify/topk_case.h"

namespace flydsl::verify {
namespace {

ReadCase read_forward(const std::string &line, uint64_t added_seed) {
  AttentionSpec spec = parse_attention_spec(line);
  spec.seed += added_seed;
  return {spec.name, [spec](flydsl_aot_handle *handle) {
            return verify_attention_case(handle, spec, call_attention_forward);
          }};
}

ReadCase read_decode(const std::string &line, uint64_t added_seed) {
  // What attention_forward takes and this one does not.
  static const std::vector<std::string> absent = {"q_dtype",          "q_descale", "q_lengths",
                                                  "k_lengths=packed", "bias",      "visible",
                                                  "dropout",          "kept"};
  AttentionSpec spec = parse_attention_spec(line, absent);
  spec.seed += added_seed;
  return {spec.name, [spec](flydsl_aot_handle *handle) {
            return verify_attention_case(handle, spec, call_attention_decode);
          }};
}

ReadCase read_backward(const std::string &line, uint64_t added_seed) {
  BackwardSpec spec = parse_backward_spec(line);
  spec.forward.seed += added_seed;
  return {spec.forward.name,
          [spec](flydsl_aot_handle *handle) { return verify_backward_case(handle, spec); }};
}

ReadCase read_gemm(const std::string &line, uint64_t added_seed) {
  GemmSpec spec = parse_gemm_spec(line);
  spec.seed += added_seed;
  return {spec.name,
          [spec](flydsl_aot_handle *handle) { return verify_gemm_case(handle, spec); }};
}

ReadCase read_norm(const std::string &line, uint64_t added_seed, bool centred) {
  NormSpec spec = parse_norm_spec(line, centred);
  spec.seed += added_seed;
  return {spec.name,
          [spec](flydsl_aot_handle *handle) { return verify_norm_case(handle, spec); }};
}
ReadCase read_rms_norm(const std::string &line, uint64_t added_seed) {
  return read_norm(line, added_seed, false);
}
ReadCase read_layer_norm(const std::string &line, uint64_t added_seed) {
  return read_norm(line, added_seed, true);
}

const AttentionOperator &gemm_cases() {
  static const AttentionOperator op = {"gemm", kGemmCases, fuzz_gemm_line, read_gemm};
  return op;
}

ReadCase read_topk(const std::string &line, uint64_t added_seed) {
  TopkSpec spec = parse_topk_spec(line);
  spec.seed += added_seed;
  return {spec.name,
          [spec](flydsl_aot_handle *handle) { return verify_topk_case(handle, spec); }};
}

const AttentionOperator &topk_cases() {
  static const AttentionOperator op = {"topk", kTopkCases, fuzz_topk_line, read_topk};
  return op;
}

ReadCase read_topk_softmax(const std::string &line, uint64_t added_seed) {
  TopkSpec spec = parse_topk_softmax_spec(line);
  spec.seed += added_seed;
  return {spec.name,
          [spec](flydsl_aot_handle *handle) { return verify_topk_softmax_case(handle, spec); }};
}

const AttentionOperator &topk_softmax_cases() {
  static const AttentionOperator op = {"topk_softmax", kTopkSoftmaxCases, fuzz_topk_softmax_line,
                                       read_topk_softmax};
  return op;
}

const AttentionOperator &rms_norm_cases() {
  static const AttentionOperator op = {"rms_norm", kRmsNormCases, fuzz_rms_norm_line, read_rms_norm};
  return op;
}

const AttentionOperator &layer_norm_cases() {
  static const AttentionOperator op = {"layer_norm", kLayerNormCases, fuzz_layer_norm_line,
                                       read_layer_norm};
  return op;
}

ReadCase read_mx_quantise(const std::string &line, uint64_t added_seed) {
  MxQuantiseSpec spec = parse_mx_quantise_spec(line);
  spec.seed += added_seed;
  return {spec.name,
          [spec](flydsl_aot_handle *handle) { return verify_mx_quantise_case(handle, spec); }};
}

ReadCase read_norm_backward(const std::string &line, uint64_t added_seed, bool centred) {
  NormBackwardSpec spec = parse_norm_backward_spec(line, centred);
  spec.seed += added_seed;
  return {spec.name,
          [spec](flydsl_aot_handle *handle) { return verify_norm_backward_case(handle, spec); }};
}
ReadCase read_rms_norm_backward(const std::string &line, uint64_t added_seed) {
  return read_norm_backward(line, added_seed, false);
}
const AttentionOperator &rms_norm_backward_cases() {
  static const AttentionOperator op = {"rms_norm_backward", kRmsNormBackwardCases, fuzz_rms_norm_backward_line,
                                       read_rms_norm_backward};
  return op;
}

ReadCase read_layer_norm_backward(const std::string &line, uint64_t added_seed) {
  return read_norm_backward(line, added_seed, true);
}
const AttentionOperator &layer_norm_backward_cases() {
  static const AttentionOperator op = {"layer_norm_backward", kLayerNormBackwardCases, fuzz_layer_norm_backward_line,
                                       read_layer_norm_backward};
  return op;
}

const AttentionOperator &mx_quantise_cases() {
  static const AttentionOperator op = {"mx_quantise", kMxQuantiseCases, fuzz_mx_quantise_line,
                                       read_mx_quantise};
  return op;
}

ReadCase read_scaled_gemm(const std::string &line, uint64_t added_seed) {
  ScaledGemmSpec spec = parse_scaled_gemm_spec(line);
  spec.seed += added_seed;
  return {spec.name,
          [spec](flydsl_aot_handle *handle) { return verify_scaled_gemm_case(handle, spec); }};
}

const AttentionOperator &scaled_gemm_cases() {
  static const AttentionOperator op = {"scaled_gemm", kScaledGemmCases, fuzz_scaled_gemm_line,
                                       read_scaled_gemm};
  return op;
}

ReadCase read_grouped_gemm(const std::string &line, uint64_t added_seed) {
  GroupedGemmSpec spec = parse_grouped_gemm_spec(line);
  spec.seed += added_seed;
  return {spec.name,
          [spec](flydsl_aot_handle *handle) { return verify_grouped_gemm_case(handle, spec); }};
}

const AttentionOperator &grouped_gemm_cases() {
  static const AttentionOperator op = {"grouped_gemm", kGroupedGemmCases, fuzz_grouped_gemm_line,
                                       read_grouped_gemm};
  return op;
}

const std::initializer_list<const AttentionOperator *> &all() {
  static const std::initializer_list<const AttentionOperator *> operators = {
      &attention_forward_cases(), &attention_decode_cases(), &attention_backward_cases(), &grouped_gemm_cases(),
      &gemm_cases(), &rms_norm_cases(), &rms_norm_backward_cases(), &layer_norm_cases(), &layer_norm_backward_cases(), &topk_cases(), &topk_softmax_cases(), &scaled_gemm_cases(), &mx_quantise_cases()};
  return operators;
}

}  // namespace

const AttentionOperator &attention_forward_cases() {
  static const AttentionOperator op = {"attention_forward", kAttentionForwardCases,
                                       fuzz_attention_forward_line, read_forward};
  return op;
}

const AttentionOperator &attention_decode_cases() {
  static const AttentionOperator op = {"attention_decode", kAttentionDecodeCases,
                                       fuzz_attention_decode_line, read_decode};
  return op;
}

const AttentionOperator &attention_backward_cases() {
  static const AttentionOperator op = {"attention_backward", kAttentionBackwardCases,
                                       fuzz_attention_backward_line, read_backward};
  return op;
}

const AttentionOperator *find_attention_operator(const std::string &name) {
  for (const AttentionOperator *op : all())
    if (name == op->name) return op;
  return nullptr;
}

std::string attention_operator_names() {
  std::string names;
  for (const AttentionOperator *op : all())
    names += (names.empty() ? "" : ", ") + std::string(op->name);
  return names;
}

}  // namespace flydsl::verify
