#include "tools/verify/attention_backward_call.h"

#include <bit>

#include "tools/verify/float16.h"

namespace flydsl::verify {
namespace {

std::vector<uint32_t> widened(const std::vector<uint16_t> &values) {
  return {values.begin(), values.end()};
}

}  // namespace

BackwardOnDevice::BackwardOnDevice(flydsl_aot_handle *handle, const BackwardCase &c,
                                   const ForwardOutputs &forward)
    : DeviceInputs(handle, c.forward),
      case_(&c),
      out_(handle, c.forward.dtype, rows.sizes(c.forward.heads_q, c.forward.value_dim()),
           c.forward.place_out, c.forward.input_poison),
      lse_(handle, FLYDSL_AOT_FP32,
           padded() ? std::vector<int64_t>{c.forward.batches, c.forward.heads_q, c.forward.seq_q}
                    : without_channels(rows.sizes(c.forward.heads_q, 1)),
           c.place_lse, std::bit_cast<uint32_t>(NAN)),
      dout_(handle, c.forward.dtype, rows.sizes(c.forward.heads_q, c.forward.value_dim()),
            c.place_dout, c.forward.input_poison),
      dq_(handle, c.forward.dtype, c.wanted[kDq], rows.sizes(c.forward.heads_q, c.forward.head_dim),
          c.place[kDq], kOutputPoison),
      dk_(handle, c.forward.dtype, c.wanted[kDk],
          keys.sizes(c.forward.heads_kv, c.forward.head_dim), c.place[kDk], kOutputPoison),
      dv_(handle, c.forward.dtype, c.wanted[kDv],
          keys.sizes(c.forward.heads_kv, c.forward.value_dim()), c.place[kDv], kOutputPoison),
      dbias_(handle, c.dbias_dtype, c.wanted[kDbias], c.dbias_sizes(), c.place[kDbias],
             kOutputPoison),
      dsinks_(handle, FLYDSL_AOT_FP32, c.wanted[kDsinks], {c.forward.heads_q}, c.place[kDsinks],
              kOutputPoison) {
  fill(forward);
}

void BackwardOnDevice::fill(const ForwardOutputs &forward) {
  const AttentionCase &c = case_->forward;
  ForwardOutputs given = forward;
  for (int64_t row = 0; row < c.batches * c.heads_q; ++row) {
    for (int64_t i = c.rows_of(row / c.heads_q); i < c.seq_q; ++i) {  // of no sequence
      given.lse[static_cast<size_t>(row * c.seq_q + i)] = NAN;
      std::fill_n(given.out.begin() + (row * c.seq_q + i) * c.value_dim(), c.value_dim(),
                  c.input_poison);
    }
  }
  out_.set(rows.placed(given.out, c.heads_q, c.value_dim(), c.input_poison));
  lse_.set(padded() ? given.lse : rows.placed(given.lse, c.heads_q, 1, NAN));
  // Where all rows are one, it is that which stands between the sequences too.
  const std::vector<bool> &zero = case_->place_dout.broadcast;
  const bool one_row = rows.packed && zero.size() > 1 && zero[1] && !case_->dout.empty();
  dout_.set(rows.placed(case_->dout, c.heads_q, c.value_dim(),
                        one_row ? case_->dout[0] : c.input_poison));
}

void BackwardOnDevice::refill(const BackwardCase &c, const ForwardOutputs &forward) {
  DeviceInputs::refill(c.forward);
  case_ = &c;
  fill(forward);
  for (Numbers *output : {&dq_, &dk_, &dv_, &dbias_, &dsinks_}) output->tensor().upload();
}

void BackwardOnDevice::set(flydsl_aot_attention_backward_params *params) const {
  DeviceInputs::set(params);
  params->out = out_.tensor();
  params->lse = lse_.tensor();
  params->dout = dout_.tensor();
  params->dq = dq_.view();
  params->dk = dk_.view();
  params->dv = dv_.view();
  params->dbias = dbias_.view();
  params->dsinks = dsinks_.view();
}

BackwardResult BackwardOnDevice::finish(flydsl_aot_status status) {
  const AttentionCase &c = case_->forward;
  BackwardResult result;
  if (!DeviceInputs::finish(status, &result)) return result;
  std::string &stray = result.stray_write;
  constexpr auto kPoison = static_cast<uint16_t>(kOutputPoison);
  const auto numbers = [](Numbers &of, flydsl_aot_dtype dtype) {
    DeviceTensor &tensor = of.tensor();
    return dtype == FLYDSL_AOT_FP32 ? tensor.get<uint32_t>() : widened(tensor.get<uint16_t>());
  };
  const auto part = [&](Numbers &of, const Side &side, int64_t heads, int64_t channels) {
    return widened(side.dense(of.tensor().get<uint16_t>(), heads, channels, kPoison, &stray));
  };
  if (case_->wanted[kDq]) result.bits[kDq] = part(dq_, rows, c.heads_q, c.head_dim);
  if (case_->wanted[kDk]) result.bits[kDk] = part(dk_, keys, c.heads_kv, c.head_dim);
  if (case_->wanted[kDv]) result.bits[kDv] = part(dv_, keys, c.heads_kv, c.value_dim());
  if (case_->wanted[kDbias]) result.bits[kDbias] = numbers(dbias_, case_->dbias_dtype);
  if (case_->wanted[kDsinks]) result.bits[kDsinks] = numbers(dsinks_, FLYDSL_AOT_FP32);
  result.outputs_untouched = true;
  size_t gradient = 0;
  for (Numbers *output : {&dq_, &dk_, &dv_, &dbias_, &dsinks_}) {
    if (!case_->wanted[gradient++]) continue;
    result.outputs_untouched = result.outputs_untouched && output->tensor().untouched();
    if (stray.empty()) stray = output->tensor().changed_outside();
  }
  for (DeviceTensor *input : {&out_, &dout_}) {
    input->get<uint16_t>();
    if (!input->untouched()) stray = "out or dout was changed";
  }
  lse_.get<float>();
  if (!lse_.untouched()) stray = "lse was changed";
  return result;
}

BackwardResult call_attention_backward(flydsl_aot_handle *handle, const BackwardCase &c,
                                       const ForwardOutputs &forward) {
  BackwardOnDevice on_device(handle, c, forward);
  flydsl_aot_attention_backward_params params{};
  on_device.set(&params);
  on_device.prepare(&params, flydsl_aot_attention_backward_query);
  BackwardResult result = on_device.finish(flydsl_aot_attention_backward(handle, &params, nullptr));
  const auto take = [](void *names, const flydsl_aot_candidate *candidate) {
    std::string &text = *static_cast<std::string *>(names);
    if (candidate->taken) text.append(text.empty() ? "" : " ").append(candidate->kernel);
  };
  if (result.status == FLYDSL_AOT_OK)
    flydsl_aot_attention_backward_explain(handle, &params, take, &result.kernels);
  return result;
}

}  // namespace flydsl::verify
