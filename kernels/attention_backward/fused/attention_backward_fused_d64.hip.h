// The fused kernel for head dim 64, in a translation unit of its own: tiles, schedule and registers are chosen once for all of it.
#pragma once

#define FLYDSL_FUSED_HEAD_DIM 64
#include "attention_backward/fused/attention_backward_fused.hip.h"
