// layer_norm for the commands.
#pragma once

#include "tools/operators.h"

namespace flydsl::tools {

const Operator &layer_norm_operator();

}  // namespace flydsl::tools
