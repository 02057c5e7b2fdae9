// topk_softmax for the commands.
#pragma once

#include "tools/operators.h"

namespace flydsl::tools {

const Operator &topk_softmax_operator();

}  // namespace flydsl::tools
