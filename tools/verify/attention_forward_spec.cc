#include "tools/verify/attention_forward_spec.h"

#include <cmath>

#include "tools/verify/case_line.h"

namespace flydsl::verify {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;

flydsl_aot_mask parse_mask(CaseLine &line) {
  const std::string key = "mask", text = line.word(key, "none");
  if (text == "none")
    return {FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_ANCHOR_NONE, 0};
  const std::vector<std::string> parts = split(text, ':');
  const std::string wanted =
      "must be none, causal:ANCHOR or LEFT,RIGHT:ANCHOR, with ANCHOR "
      "top-left, bottom-right or none";
  if (parts.size() != 2) line.fail(key, wanted);
  flydsl_aot_mask mask{FLYDSL_AOT_UNLIMITED, 0, FLYDSL_AOT_ANCHOR_NONE, 0};
  if (parts[1] == "top-left")
    mask.anchor = FLYDSL_AOT_ANCHOR_TOP_LEFT;
  else if (parts[1] == "bottom-right")
    mask.anchor = FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT;
  else if (parts[1] != "none")
    line.fail(key, wanted);
  if (parts[0] == "causal") return mask;
  const std::vector<std::string> bounds = split(parts[0], ',');
  if (bounds.size() != 2) line.fail(key, wanted);
  mask.left = line.to_integer(key, bounds[0], INT64_MIN, INT64_MAX);
  mask.right = line.to_integer(key, bounds[1], INT64_MIN, INT64_MAX);
  return mask;
}

// "used:1,0,33", "packed:...", "packed-used:...", of keys also "paged:...".
void parse_lengths(CaseLine &line, const std::string &key, int64_t batches, int64_t longest,
                   bool paged, std::vector<int64_t> *lengths, Lengths *as) {
  if (!line.has(key)) return;
  const std::string text = line.word(key, "");
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (name == "used")
    *as = Lengths::kUsed;
  else if (name == "packed")
    *as = Lengths::kPacked;
  else if (name == "packed-used")
    *as = Lengths::kPackedUsed;
  else if (name == "paged" && paged)
    *as = Lengths::kPaged;
  else
    line.fail(key, paged ? "must begin with used:, packed:, packed-used: or paged:"
                         : "must begin with used:, packed: or packed-used:");
  if (colon != std::string::npos) {
    for (const std::string &part : split(text.substr(colon + 1), ','))
      lengths->push_back(line.to_integer(key, part, 0, longest));
  }
  if (static_cast<int64_t>(lengths->size()) != batches)
    line.fail(key, "must have as many lengths as b, " + std::to_string(batches));
}

flydsl_aot_dtype parse_float8(CaseLine &line, const std::string &key) {
  constexpr flydsl_aot_dtype kTypes[] = {FLYDSL_AOT_DTYPE_INVALID, FLYDSL_AOT_E4M3,
                                         FLYDSL_AOT_E5M2};
  return kTypes[line.choice(key, 0, {"none", "e4m3", "e5m2"})];
}

void parse_shape(CaseLine &line, AttentionCase &c) {
  constexpr flydsl_aot_dtype kTypes[] = {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16};
  c.dtype = kTypes[line.choice("dtype", 0, {"bf16", "fp16"})];
  c.q_dtype = parse_float8(line, "q_dtype");
  c.kv_dtype = parse_float8(line, "kv_dtype");
  c.batches = line.integer("b", 1, 0, kMaxSize);
  c.heads_kv = line.integer("hkv", 1, 0, kMaxSize);
  c.heads_q = line.integer("hq", c.heads_kv, 0, kMaxSize);
  c.seq_q = line.integer("sq", 1, 0, kMaxSize);
  c.seq_k = line.integer("sk", c.seq_q, 0, kMaxSize);
  c.head_dim = line.integer("d", 64, 0, kMaxSize);
  c.head_dim_v = line.integer("dv", c.head_dim, 0, kMaxSize);
  const int64_t numbers = c.batches * std::max(c.heads_q * c.seq_q, c.heads_kv * c.seq_k);
  if (numbers > kMaxSize || numbers * std::max(c.head_dim, c.head_dim_v) > 64 * kMaxSize)
    line.fail("b", "the problem has more than 2^24 rows or 2^30 elements");
  const double usual = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, c.head_dim)));
  c.scale = static_cast<float>(line.number("scale", usual));
  c.mask = parse_mask(line);
  parse_lengths(line, "q_lengths", c.batches, c.seq_q, false, &c.lengths_q, &c.lengths_q_as);
  parse_lengths(line, "k_lengths", c.batches, c.seq_k, true, &c.lengths_k, &c.lengths_k_as);
  c.block_size = line.integer("block", 16, 1, 1 << 20);
  c.want_lse = line.choice("lse", 1, {"no", "yes"}) == 1;
}

void parse_scores(CaseLine &line, AttentionSpec &spec) {
  AttentionCase &c = spec.base;
  c.softcap = static_cast<float>(line.number("softcap", 0));
  const size_t bias = line.choice("bias", 0, {"none", "fp32", "same"});
  spec.bias = bias > 0;
  c.bias_dtype = bias == 2 ? c.dtype : FLYDSL_AOT_FP32;
  spec.bias_factor = line.number("bias_factor", 1);
  spec.bias_hides = line.number("bias_hides", 0);
  spec.visible = line.choice("visible", 0, {"none", "random"}) > 0;
  spec.visible_share = line.number("visible_share", 0.7);
  spec.alibi = static_cast<AttentionSpec::Slopes>(line.choice("alibi", 0, {"none", "h", "bh"}));
  spec.sinks = static_cast<AttentionSpec::Sinks>(
      line.choice("sinks", 0, {"none", "normal", "zero", "high", "minus-infinity"}));
  c.dropout_p = static_cast<float>(line.number("dropout", 0));
  c.seed = line.bits("dropout_seed", 0x123456789abcdef);
  c.offset = line.bits("dropout_offset", 0x100000007);
  c.random_on_device = line.choice("dropout_from", 0, {"host", "device"}) == 1;
  c.want_kept = line.choice("kept", 0, {"no", "yes"}) == 1;
  const std::vector<std::string> of_kv = {"none", "one", "h", "bh"},
                                 of_q = {"none", "one", "h", "bh", "hq", "bhq"};
  const auto descale = [&](const char *key, const std::vector<std::string> &names) {
    const size_t chosen = line.choice(key, 0, names);
    return chosen == 0 ? std::string() : names[chosen];
  };
  spec.q_descale = descale("q_descale", of_q);
  spec.k_descale = descale("k_descale", of_kv);
  spec.v_descale = descale("v_descale", of_kv);
}

// What would make a case mean something else than it says.
void check(CaseLine &line, const AttentionSpec &spec) {
  const AttentionCase &c = spec.base;
  if (spec.inf_k > 0 && c.kv_dtype == FLYDSL_AOT_E4M3) line.fail("inf_k", "e4m3 has no infinity");
  const auto dense = [](Lengths as) { return as == Lengths::kDense || as == Lengths::kUsed; };
  if (!dense(c.lengths_q_as) && !spec.place_q.zero.empty())
    line.fail("q_zero", "needs dense q, not packed");
  for (const PlacementRule *rule : {&spec.place_k, &spec.place_v}) {
    if (rule->zero.empty()) continue;
    if (!dense(c.lengths_k_as)) line.fail("k_zero", "needs dense k and v, not packed or paged");
    if (spec.nan_k + spec.nan_v + spec.nan_v_channel + spec.inf_k + spec.nan_hidden > 0)
      line.fail("k_zero",
                "cannot be together with nan_k, nan_v, nan_v_channel, inf_k or nan_hidden");
  }
  if (spec.v.kind == Values::kKeys) {
    for (const char *key : {"v_place", "v_zero", "nan_v", "nan_v_channel"})
      if (line.has(key)) line.fail(key, "v=k leaves v no place and no numbers of its own");
    if (c.value_dim() > c.head_dim) line.fail("v", "k must have at least dv channels");
  }
}

void check_absent(CaseLine &line, const std::vector<std::string> &absent) {
  for (const std::string &rule : absent) {
    const size_t equals = rule.find('=');
    const std::string key = rule.substr(0, equals);
    if (line.has(key) &&
        (equals == std::string::npos || line.word(key, "").starts_with(rule.substr(equals + 1))))
      line.fail(key, "this operator has no such argument");
  }
}

}  // namespace

AttentionSpec parse_attention_settings(CaseLine &line) {
  AttentionSpec spec;
  spec.name = line.name();
  spec.seed = line.bits("seed", 1);
  parse_shape(line, spec.base);
  parse_scores(line, spec);
  spec.q = parse_values(line, "q");
  spec.k = parse_values(line, "k");
  spec.v = parse_values(line, "v");
  spec.place_q = parse_placement(line, "q", "bhs");
  spec.place_k = parse_placement(line, "k", "bhs");
  spec.place_v = parse_placement(line, "v", "bhs");
  spec.place_out = parse_placement(line, "out", "");
  spec.place_lse = parse_placement(line, "lse", "");
  spec.place_bias = parse_placement(line, "bias", "bhqk");
  spec.place_visible = parse_placement(line, "visible", "bhqk");
  spec.place_kept = parse_placement(line, "kept", "");
  spec.nan_k = line.integer("nan_k", 0, 0, kMaxSize);
  spec.nan_v = line.integer("nan_v", 0, 0, kMaxSize);
  spec.nan_v_channel = line.integer("nan_v_channel", 0, 0, kMaxSize);
  spec.inf_k = line.integer("inf_k", 0, 0, kMaxSize);
  spec.nan_hidden = line.choice("nan_hidden", 0, {"no", "yes"}) == 1;
  spec.repeat = line.integer("repeat", 1, 1, 1000);
  spec.same_when_tight = line.choice("same_when_tight", 0, {"no", "yes"}) == 1;
  spec.expect = line.word("expect", "");
  spec.want_out = line.numbers("want_out");
  spec.want_lse = line.numbers("want_lse");
  return spec;
}

void check_attention_settings(CaseLine &line, const AttentionSpec &spec,
                              const std::vector<std::string> &absent) {
  line.finish();
  check(line, spec);
  check_absent(line, absent);
}

AttentionSpec parse_attention_spec(const std::string &text,
                                   const std::vector<std::string> &absent) {
  CaseLine line(text);
  AttentionSpec spec = parse_attention_settings(line);
  check_attention_settings(line, spec, absent);
  return spec;
}

}  // namespace flydsl::verify
