// rms_norm_backward for the commands.
#pragma once

#include "tools/operators.h"

namespace flydsl::tools {

const Operator &rms_norm_backward_operator();

}  // namespace flydsl::tools
