// attention_forward for the run and explain commands.
#pragma once

#include "tools/operators.h"

namespace flydsl::tools {

const Operator &attention_forward_operator();

}  // namespace flydsl::tools
