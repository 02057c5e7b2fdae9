// gemm for the commands.
#pragma once

#include "tools/operators.h"

namespace flydsl::tools {

const Operator &gemm_operator();

}  // namespace flydsl::tools
