// attention_decode for the commands.
#pragma once

#include "tools/operators.h"

namespace flydsl::tools {

const Operator &attention_decode_operator();

}  // namespace flydsl::tools
