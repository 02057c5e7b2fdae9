/* flydsl_aot: ahead-of-time kernels for AMD GPUs, C ABI.
 *
 * Self-contained C11: needs neither HIP nor C++. Every parameter struct begins with uint32_t struct_size,
 * which the caller sets to the sizeof it was compiled with: fields are only ever appended. A
 * library takes the struct of any earlier version from the struct's first one on (missing fields are zero), and a larger
 * one of up to 4,096 bytes whose unknown tail is all zero; anything else is INVALID_STRUCT_SIZE. In structs that the
 * library fills, it writes the fields it knows and zeroes the rest. No function throws, aborts or prints (logging is off
 * unless asked for with FLYDSL_AOT_LOG; the emulator, a library of its own, reports kernel faults on stderr). A refused
 * call has touched no output and launched nothing. A process may fork before it opens a
 * device. In a child forked later every call that would use a device is PROCESS_FORKED (HIP does not survive a fork), flydsl_aot_close
 * frees the child's memory only, and handles of DEVICE_NONE work. */
#ifndef FLYDSL_AOT_FLYDSL_AOT_H
#define FLYDSL_AOT_FLYDSL_AOT_H

#include "flydsl_aot/archive.h"
#include "flydsl_aot/attention_backward.h"
#include "flydsl_aot/attention_decode.h"
#include "flydsl_aot/attention_forward.h"
#include "flydsl_aot/device.h"
#include "flydsl_aot/fields.h"
#include "flydsl_aot/grouped_gemm.h"
#include "flydsl_aot/gemm.h"
#include "flydsl_aot/layer_norm.h"
#include "flydsl_aot/layer_norm_backward.h"
#include "flydsl_aot/library.h"
#include "flydsl_aot/mx_quantise.h"
#include "flydsl_aot/rms_norm.h"
#include "flydsl_aot/rms_norm_backward.h"
#include "flydsl_aot/scaled_gemm.h"
#include "flydsl_aot/status.h"
#include "flydsl_aot/topk.h"
#include "flydsl_aot/topk_softmax.h"
#include "flydsl_aot/types.h"
#include "flydsl_aot/version.h"

#endif
