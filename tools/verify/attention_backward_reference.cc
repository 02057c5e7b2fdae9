#include "tools/verify/attention_backward_reference.h"

#include <algorithm>
#include <cstdio>

namespace flydsl::verify {
namespace {

constexpr double kEpsilon = 0x1p-24, kLeast = 0x1p-126, kLargest = 0x1p128;

// Of the error of rounding a number.
double variance(const BackwardRounding &rounding, double value) {
  const double most = rounding.unit * std::fabs(value) + rounding.tiny;
  return most * most / 3;
}

double norm(const double *values, int64_t count) {
  double squares = 0;
  for (int64_t n = 0; n < count; ++n) squares += values[n] * values[n];
  return std::sqrt(squares);
}

double dot(const double *a, const double *b, int64_t count) {
  double sum = 0;
  for (int64_t n = 0; n < count; ++n) sum += a[n] * b[n];
  return sum;
}

double absolute_dot(const double *a, const double *b, int64_t count) {
  double sum = 0;
  for (int64_t n = 0; n < count; ++n) sum += std::fabs(a[n] * b[n]);
  return sum;
}

void add(double *to, double factor, const double *from, int64_t count) {
  for (int64_t n = 0; n < count; ++n) to[n] += factor * from[n];
}

// A floor of finite results only: what is not finite is not judged by it.
double finite(double floor) {
  return std::isfinite(floor) ? floor : 0;
}

// The softmax of one row.
struct Row {
  std::vector<Score> scores;
  std::vector<double> weights;  // P; 0 where the key is not visible
  double lse = -INFINITY, scale = 0;
  bool empty = true;  // sees no key

  Row(const BackwardProblem &p, int64_t h, int64_t i)
      : scores(static_cast<size_t>(p.keys)), weights(static_cast<size_t>(p.keys)) {
    const double *q = p.q.data() + (h * p.rows + i) * p.head_dim;
    const double *k = p.k.data() + h / (p.heads_q / p.heads_kv) * p.keys * p.head_dim;
    const double sink = p.terms.sink ? p.terms.sink(h) : -INFINITY;
    double maximum = sink;
    bool poisoned = std::isnan(sink) || sink == INFINITY;
    for (int64_t j = 0; j < p.keys; ++j) {
      const Score score = attention_score(q, k + j * p.head_dim, p.head_dim, p.scale, p.mask,
                                          p.terms, {0, h, i, j, p.rows, p.keys});
      scores[static_cast<size_t>(j)] = score;
      if (score.value == -INFINITY) continue;
      empty = false;
      poisoned = poisoned || std::isnan(score.value) || score.value == INFINITY;
      maximum = std::max(maximum, score.value);
      if (std::isfinite(score.magnitude)) scale = std::max(scale, score.magnitude);
    }
    lse = sink;
    if (empty) return;
    double sum = std::exp(sink - maximum);
    for (const Score &score : scores) sum += std::exp(score.value - maximum);
    lse = poisoned ? NAN : maximum + std::log(sum);
  }

  void weigh(double given_lse) {
    for (size_t j = 0; j < scores.size(); ++j)
      weights[j] = scores[j].value == -INFINITY ? 0 : std::exp(scores[j].value - given_lse);
  }
};

}  // namespace

Gradients attention_gradients(const BackwardProblem &p, const BackwardRounding &rounding) {
  Gradients g;
  const auto rounded = [&](double operand) {
    return rounding.operand ? rounding.operand(operand) : operand;
  };
  const int64_t all_rows = p.heads_q * p.rows, all_keys = p.heads_kv * p.keys;
  g.out.assign(static_cast<size_t>(all_rows * p.value_dim), 0);
  g.lse.assign(static_cast<size_t>(all_rows), -INFINITY);
  g.dq.assign(p.q.size(), 0);
  g.dk.assign(p.k.size(), 0);
  g.dv.assign(p.v.size(), 0);
  g.dsink.assign(static_cast<size_t>(p.heads_q), 0);
  g.dq_floor.assign(static_cast<size_t>(all_rows), 0);
  g.dk_floor.assign(static_cast<size_t>(all_keys), 0);
  g.dv_floor = g.dk_floor;
  g.dsink_floor = g.dsink;
  g.dq_variance = g.dq_floor;
  g.dk_variance = g.dv_variance = g.dk_floor;
  if (p.want_score_gradient) {
    g.score.assign(static_cast<size_t>(all_rows * p.keys), 0);
    g.score_floor = g.score_variance = g.score;
  }
  // Of n fp32 additions in any order; dp - delta may be nothing else.
  const double of_dots = std::max<double>(4, static_cast<double>(p.value_dim)) * kEpsilon;
  for (int64_t h = 0; h < p.heads_q; ++h) {
    const int64_t group = h / (p.heads_q / p.heads_kv);
    for (int64_t i = 0; i < p.rows; ++i) {
      const int64_t row_number = h * p.rows + i;
      const size_t at = static_cast<size_t>(row_number);
      Row row(p, h, i);
      g.lse[at] = row.lse;
      const double *dout = p.dout.data() + row_number * p.value_dim;
      double *out = g.out.data() + row_number * p.value_dim;
      if (row.empty) continue;  // out is 0, and nothing depends on it
      const auto dropout = [&](int64_t j) {
        return p.terms.dropout ? p.terms.dropout(0, h, i, j) : 1;
      };
      const auto key = [&](const std::vector<double> &of, int64_t j, int64_t channels) {
        return of.data() + (group * p.keys + j) * channels;
      };
      const auto visible = [&](int64_t j) {
        return row.scores[static_cast<size_t>(j)].value != -INFINITY;
      };
      row.weigh(row.lse);
      for (int64_t j = 0; j < p.keys; ++j) {
        if (visible(j))
          add(out, row.weights[static_cast<size_t>(j)] * dropout(j), key(p.v, j, p.value_dim),
              p.value_dim);
      }

      // Backward: from out and lse as they were stored.
      const double lse = rounding.lse ? (*rounding.lse)[at] : row.lse;
      if (rounding.out)
        std::copy_n(rounding.out->data() + row_number * p.value_dim, p.value_dim, out);
      row.weigh(lse);
      const double delta = dot(dout, out, p.value_dim),
                   delta_magnitude = absolute_dot(dout, out, p.value_dim),
                   dout_norm = norm(dout, p.value_dim),
                   q_norm = norm(p.q.data() + row_number * p.head_dim, p.head_dim),
                   relative = std::expm1(kEpsilon * (4 * row.scale + 4 * std::fabs(lse) + 16));
      for (int64_t j = 0; j < p.keys; ++j) {
        if (!visible(j)) continue;
        const double weight = row.weights[static_cast<size_t>(j)], m = dropout(j),
                     derivative = row.scores[static_cast<size_t>(j)].derivative;
        const double *k = key(p.k, j, p.head_dim), *v = key(p.v, j, p.value_dim);
        const size_t key_at = static_cast<size_t>(group * p.keys + j);
        add(g.dv.data() + (group * p.keys + j) * p.value_dim, rounded(weight * m), dout,
            p.value_dim);
        const double of_weight = std::min(relative * weight, kLargest),
                     largest = weight + of_weight;
        g.dv_floor[key_at] += finite((of_weight + 4 * kEpsilon * largest + kLeast) * m * dout_norm);
        g.dv_variance[key_at] += finite(variance(rounding, weight * m) * dout_norm * dout_norm);
        const double dp = m * dot(dout, v, p.value_dim);
        const double dp_magnitude = m * absolute_dot(dout, v, p.value_dim);
        const double ds = weight * (dp - delta);
        const double ds_floor = of_weight * std::fabs(dp - delta) +
                                of_dots * largest * (dp_magnitude + delta_magnitude) +
                                kLeast * (std::fabs(dp - delta) + 1);
        if (p.want_score_gradient) {
          const size_t place = at * static_cast<size_t>(p.keys) + static_cast<size_t>(j);
          g.score[place] = rounded(ds);
          g.score_floor[place] = finite(ds_floor + 4 * kEpsilon * std::fabs(ds));
          g.score_variance[place] = finite(variance(rounding, ds));
        }
        const double before_cap = ds * derivative;
        const double floor = ds_floor * derivative +
                             (p.terms.softcap > 0 ? 0x1p-20 * (std::fabs(ds) + ds_floor) : 0) +
                             4 * kEpsilon * std::fabs(before_cap);
        const double operand = p.scale * rounded(before_cap);
        add(g.dq.data() + row_number * p.head_dim, operand, k, p.head_dim);
        add(g.dk.data() + (group * p.keys + j) * p.head_dim, operand,
            p.q.data() + row_number * p.head_dim, p.head_dim);
        const double k_norm = norm(k, p.head_dim), factor = std::fabs(p.scale),
                     spread = variance(rounding, before_cap) * factor * factor;
        g.dq_floor[at] += finite(factor * floor * k_norm);
        g.dk_floor[key_at] += finite(factor * floor * q_norm);
        g.dq_variance[at] += finite(spread * k_norm * k_norm);
        g.dk_variance[key_at] += finite(spread * q_norm * q_norm);
      }
      if (p.terms.sink) {
        const double sink_weight = std::exp(p.terms.sink(h) - lse),
                     of_sink = std::min(relative * sink_weight, kLargest);
        g.dsink[static_cast<size_t>(h)] -= sink_weight * delta;
        g.dsink_floor[static_cast<size_t>(h)] += finite(
            of_sink * std::fabs(delta) + of_dots * (sink_weight + of_sink) * delta_magnitude);
      }
    }
  }
  return g;
}

GradientJudgement judge_gradient(const std::vector<double> &got, const GradientReference &reference,
                                 double frobenius_limit) {
  GradientJudgement judgement;
  if (got.size() != reference.exact.size()) return {false, INFINITY, 0, "wrong number of elements"};
  const auto columns = static_cast<size_t>(reference.columns);
  double all_error = 0, all_exact = 0, all_rounded = 0, all_floors = 0;
  char text[400];
  for (size_t row = 0; columns > 0 && row < got.size() / columns; ++row) {
    if (!reference.used.empty() && !reference.used[row]) continue;
    double error = 0, exact = 0, rounding = 0, other_rounding = 0, worst = -1;
    size_t judged = 0, place = row * columns;
    bool fault = false;
    for (size_t n = row * columns; n < (row + 1) * columns; ++n) {
      const double expected = reference.exact[n];
      const auto off_by = [&](const std::vector<double> &values) {
        return values.empty() ? 0 : std::pow(values[n] - expected, 2);
      };
      if (!std::isfinite(expected)) {
        if (std::isfinite(got[n]) && !fault) fault = true, place = n;
        continue;
      }
      if (!std::isfinite(reference.rounded[n])) continue;
      if (!std::isfinite(got[n]) && !fault) fault = true, place = n;
      if (fault) continue;
      ++judged;
      const double off = std::pow(got[n] - expected, 2);
      error += off;
      exact += expected * expected;
      rounding += off_by(reference.rounded);
      other_rounding += off_by(reference.unrounded_operands);
      if (off > worst) worst = off, place = n;
    }
    const double deviation = reference.deviation.empty() ? 0 : reference.deviation[row];
    const double rounding_error =
        std::max(std::sqrt(std::max(rounding, other_rounding)), deviation);
    const double bound = 4 * rounding_error + 2 * reference.unit * std::sqrt(exact) +
                         reference.floor[row] +
                         (exact > 0 ? reference.tiny * std::sqrt(static_cast<double>(judged)) : 0);
    const double ratio = fault || (error > 0 && bound == 0) ? INFINITY
                         : bound > 0                        ? std::sqrt(error) / bound
                                                            : 0;
    if (!fault) {
      all_error += error;
      all_exact += exact;
      all_rounded += rounding_error * rounding_error;
      all_floors += std::pow(reference.floor[row], 2);
    }
    if (judgement.text.empty() || ratio > judgement.worst_ratio) {
      judgement.worst_ratio = ratio;
      std::snprintf(text, sizeof text,
                    "row %zu, of norm %.4g: error %.3g, bound %.3g (rounded formulas are off by "
                    "%.3g, fp32 by %.3g), %.3g of "
                    "it; column %zu: %.9g, reference %.9g",
                    row, std::sqrt(exact), std::sqrt(error), bound, rounding_error,
                    reference.floor[row], ratio, place % columns, got[place],
                    reference.exact[place]);
      judgement.text = text;
    }
  }
  if (judgement.text.empty()) judgement.text = "no elements";
  judgement.ok = judgement.worst_ratio <= 1;
  if (all_exact > 0) judgement.frobenius = std::sqrt(all_error / all_exact);
  const double most = std::max(frobenius_limit * std::sqrt(all_exact), 2 * std::sqrt(all_rounded)) +
                      std::sqrt(all_floors);
  if (judgement.ok && std::sqrt(all_error) > most) {
    judgement.ok = false;
    std::snprintf(text, sizeof text,
                  "error of all elements together %.3g, above %.3g; their norm is %.3g",
                  std::sqrt(all_error), most, std::sqrt(all_exact));
    judgement.text = text;
  }
  return judgement;
}

}  // namespace flydsl::verify
