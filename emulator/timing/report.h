// A LaunchModel as JSON, one line.
#pragma once

#include <string>

#include "emulator/timing/launch_model.h"

namespace flydsl::emu::timing {

// With `detail`, from a model made with profile and timeline, also
//   "profile": each operation of the kernel, {"offset", "text", "source", "issued", "stalls": clocks by reason};
//   "timeline": [{"begin", "end", "op": index in "profile", "simd", "wave", "category"}] in clocks,
//   "timeline_truncated": there was more.
std::string launch_json(const LaunchModel &model, const Program &program, bool detail);

}  // namespace flydsl::emu::timing
