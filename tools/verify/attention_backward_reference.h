// The float64 oracle of attention_backward: the gradients of sum(dout * out), written from the definition of the
// forward pass (attention_score.h) and the chain rule, and from nothing else; the judge that compares a result with it.
//
//   P_ij = exp(s_ij - lse_i) where query i sees key j, else 0      M_ij: what dropout multiplies a weight by
//   dV_j = sum_i M P dO_i     dP_ij = M (dO_i . V_j)     delta_i = dO_i . O_i     dS_ij = P (dP - delta)
//   dbias_ij = dS_ij          dS'_ij = dS (1 - tanh^2) with softcap, else dS
//   dQ_i = scale sum_j dS' K_j     dK_j = scale sum_i dS' Q_i     dsink = - sum_i exp(sink - lse_i) delta_i
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/verify/attention_score.h"

namespace flydsl::verify {

// One sequence in float64: q (Hq, rows, D), k (Hkv, keys, D), v (Hkv, keys, Dv), dout (Hq, rows, Dv).
struct BackwardProblem {
  int64_t heads_q = 1, heads_kv = 1, rows = 0, keys = 0, head_dim = 0, value_dim = 0;
  std::vector<double> q, k, v, dout;
  double scale = 1;
  flydsl_aot_mask mask{};
  ReferenceTerms terms;  // of batch 0
  bool want_score_gradient = false;
};

// Where a kernel rounds; nowhere in the exact gradients.
struct BackwardRounding {
  double (*operand)(double) =
      nullptr;                // M P and dS', which matrix instructions multiply
  double unit = 0, tiny = 0;  // its unit roundoff, half its smallest subnormal
  // What the forward pass gave, (Hq, rows, Dv) and (Hq, rows), if not what the problem's scores give exactly.
  const std::vector<double> *out = nullptr, *lse = nullptr;
};

struct Gradients {
  std::vector<double> out, lse;      // (Hq, rows, Dv), (Hq, rows): what forward gives
  std::vector<double> dq, dk, dv;    // as q, k and v
  std::vector<double> score, dsink;  // (Hq, rows, keys), if wanted: what bias gets; (Hq)
  // What fp32 arithmetic may add to the norm of a row, or to the number: with e = 2^-24, t = 2^-126 (less may be taken as 0), S_i the
  // largest |scale| sum |q k| + |bias| + |slope distance| of row i,
  //   r_ij    = P_ij (exp(e (4 S_i + 4 |lse_i| + 16)) - 1), at most 2^128      of P_ij
  //   f_ij    = r |dP - delta| + 4 e (P + r) (M sum_d |dO V| + sum_d |dO O|) + t (|dP - delta| + 1)    of dS_ij
  //   f'_ij   = f (1 - tanh^2) + 2^-20 (|dS| + f) with softcap, else f             of dS'_ij
  //   dQ_i: |scale| sum_j (f' + 4 e |dS'|) |K_j|     dK_j: |scale| sum_i (f' + 4 e |dS'|) |Q_i|
  //   dV_j: sum_i M (r + 4 e (P + r) + t) |dO_i|             dbias: the sum of f + 4 e |dS| over what is summed
  //   dsink: sum_i r |delta_i| + 4 e (P + r) sum_d |dO O|, with P = exp(sink - lse_i)
  std::vector<double> dq_floor, dk_floor, dv_floor;  // (Hq, rows), (Hkv, keys), (Hkv, keys)
  std::vector<double> score_floor, dsink_floor;      // as score and dsink
  // With operands that are rounded, squares: what the norm of a row's error is on average, if the rounding error of an operand x
  // is spread evenly within u |x| + tiny.
  std::vector<double> dq_variance, dk_variance, dv_variance, score_variance;
};

Gradients attention_gradients(const BackwardProblem &problem, const BackwardRounding &rounding);

// One output of attention_backward, as rows of numbers.
struct GradientReference {
  int64_t columns = 1;
  std::vector<double> exact;  // the definition's
  std::vector<double>
      rounded;  // the same formulas with P, dS, O and the result rounded to the type
  std::vector<double> unrounded_operands;  // if not empty: with O and the result rounded alone
  std::vector<double> floor;               // of each row, as above
  std::vector<double> deviation;           // of each row, root of the variance above; empty: 0
  std::vector<bool> used;                  // of each row, whether it is judged; empty: all are
  double unit = 0;                         // unit roundoff of the output: 2^-8, 2^-11 or 2^-24
  double tiny = 0;  // half its smallest subnormal; at least 2^-126 with fp32's exponents
};

struct GradientJudgement {
  bool ok = true;
  double worst_ratio = 0;  // worst |error of a row| / bound
  double frobenius = 0;    // |error| / |reference| over all finite elements
  std::string text;        // worst row and its values; first fault if not ok
};

// Every row: |error| <= 4 e + 2 u |row| + its floor, Euclidean norms over those elements that are finite in both references. e is the
// error of the rounded formulas, or what it is on average where that is more (a row of few independent numbers can be right by chance); of
// dbias the larger one of both ways of rounding, since nothing says that its sum takes rounded dS. Elements that are not
// finite in the exact reference must not be finite in the result; those that only the rounded formulas overflow are not judged. A row
// whose bound is 0 (a query that sees no key, a key that nobody sees) must be exactly 0. Over all elements the norm of the error is at most
// `frobenius_limit` times that of the reference, or 2 e where that is more, plus the floors.
GradientJudgement judge_gradient(const std::vector<double> &got, const GradientReference &reference,
                                 double frobenius_limit);

}  // namespace flydsl::verify
