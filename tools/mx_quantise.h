// mx_quantise for the commands.
#pragma once

#include "tools/operators.h"

namespace flydsl::tools {

const Operator &mx_quantise_operator();

}  // namespace flydsl::tools
