// scaled_gemm for the commands.
#pragma once

#include "tools/operators.h"

namespace flydsl::tools {

const Operator &scaled_gemm_operator();

}  // namespace flydsl::tools
