// The kernel arguments of attention_backward for this folder, and for the parts of attention_forward/ that it uses: an
// entry includes this before any of those.
#pragma once

#include "flydsl_aot_generated/attention_backward_kernarg.h"

#define FLYDSL_KERNEL_ARGUMENTS flydsl_aot_attention_backward_kernarg
#include "attention_forward/arguments.hip.h"
