// The attention_backward operator for the commands.
#pragma once

#include "tools/operators.h"

namespace flydsl::tools {

const Operator &attention_backward_operator();

}  // namespace flydsl::tools
