// Element types, for checks and messages.
#pragma once

#include "flydsl_aot/types.h"

namespace flydsl {

bool known_dtype(flydsl_aot_dtype dtype);

}  // namespace flydsl
