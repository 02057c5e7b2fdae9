/* flydsl_aot: ahead-of-time kernels for AMD GPUs, C ABI.
 *
 * Self-contained C11: needs neither HIP nor C++. Every parameter struct begins with uint32_t struct_size,
 * which the caller sets to the sizeof it was compiled with: fields are only ever appended, a library reads
 * the fields it is given and takes the rest as zero, and refuses (INVALID_STRUCT_SIZE) a larger struct whose
 * unknown tail is not all zero. In structs that the library fills, it writes the fields it knows and zeroes the
 * rest. No function throws, aborts or prints (logging is off unless asked for with
 * FLYDSL_AOT_LOG). A refused call has touched no output and launched nothing. */
#ifndef FLYDSL_AOT_FLYDSL_AOT_H
#define FLYDSL_AOT_FLYDSL_AOT_H

#include "flydsl_aot/archive.h"
#include "flydsl_aot/attention_forward.h"
#include "flydsl_aot/device.h"
#include "flydsl_aot/library.h"
#include "flydsl_aot/status.h"
#include "flydsl_aot/types.h"
#include "flydsl_aot/version.h"

#endif
