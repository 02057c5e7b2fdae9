// Semantics are compiled three times, for x86-64, x86-64-v3 (AVX2, FMA, F16C) and x86-64-v4
// (AVX-512), into the namespaces base, avx2 and avx512; the level is chosen at run time. Everything
// a semantics file defines is in its level's namespace or an unnamed one and it includes no C++
// library header with functions, so that no code of one level can replace another's at link time
// (checked by a test with nm).
#pragma once

#ifndef FLYDSL_EMU_LEVEL
#error "compile semantics through flydsl_emu_semantics() in emulator/CMakeLists.txt"
#endif
