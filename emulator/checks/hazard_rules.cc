// Sources: AMD "Instinct MI300" (CDNA3) ISA, section 4.5 "Manually Inserted Wait States (NOPs)",
// and LLVM's GCNHazardRecognizer.cpp, by the function named at each row. gfx940 stands for
// gfx940-gfx942.
#include "emulator/checks/hazard_rules.h"

namespace flydsl::emu::checks {
namespace {
constexpr uint8_t kAll = kGfx90a | kGfx940 | kGfx950, kNew = kGfx940 | kGfx950;
}

const HazardRule kHazardRules[] = {
    // checkVMEMHazards
    {kAll, kIsValu, 0, kIsVmem, 0, Overlap::kDefUseScalar, 5,
     "a scalar register written by a vector ALU instruction and read by a vector memory "
     "instruction"},
    // checkDPPHazards
    {kAll, kIsValu, 0, kIsDpp, 0, Overlap::kDefUseVector, 2,
     "a vector register written by a vector ALU instruction and read by a DPP instruction"},
    {kAll, kIsValu, 0, kIsDpp, 0, Overlap::kDefExec, 5,
     "EXEC written by a vector ALU instruction before a DPP instruction"},
    // checkDivFMasHazards
    {kAll, kIsValu, 0, kIsDivFmas, 0, Overlap::kDefVcc, 4,
     "VCC written by a vector ALU instruction before v_div_fmas"},
    // checkRWLaneHazards
    {kAll, kIsValu, 0, kIsRwLane, 0, Overlap::kDefLaneSelect, 4,
     "a lane select written by a vector ALU instruction"},
    // checkGetRegHazards, checkSetRegHazards
    {kAll, kIsSetreg, 0, kIsGetreg, 0, Overlap::kHardwareRegister, 2,
     "s_getreg of a hardware register just written by s_setreg"},
    {kAll, kIsSetreg, 0, kIsSetreg, 0, Overlap::kHardwareRegister, 2,
     "s_setreg of a hardware register just written by s_setreg"},
    // checkReadM0Hazards
    {kAll, kIsSalu, 0, kIsM0Reader, 0, Overlap::kDefM0, 1,
     "M0 written by a scalar instruction before s_movrel, s_sendmsg, LDS add-TID or GDS"},
    {kAll, kIsSalu, 0, kIsLdsDma, 0, Overlap::kDefM0, 1,
     "M0 written by a scalar instruction before a copy to LDS"},
    // checkVALUHazardsHelper
    {kGfx90a, kIsWideStore, 0, kIsValu, 0, Overlap::kStoreDataDef, 1,
     "store data of more than 64 bits overwritten by a vector ALU instruction"},
    {kNew, kIsWideStore, 0, kIsValu, 0, Overlap::kStoreDataDef, 2,
     "store data of more than 64 bits overwritten by a vector ALU instruction"},
    // checkVALUHazards
    {kNew, kIsTrans, 0, kIsValu, kIsTrans, Overlap::kDefUseVector, 1,
     "the result of a transcendental instruction read by another vector ALU instruction"},
    {kNew, kIsDstSel, 0, kIsValu, 0, Overlap::kDefAnyVector, 1,
     "a result shifted into part of a register (SDWA, op_sel, fp8 or fp4 conversion) used at once"},
    {kNew, kIsValu, 0, kIsValu, 0, Overlap::kDefUseScalar, 2,
     "a scalar register written by a vector ALU instruction and read by another"},
    {kNew, kIsValu, 0, kIsReadLane, 0, Overlap::kDefUseVector, 1,
     "a vector register written by a vector ALU instruction and read by v_readlane or "
     "v_readfirstlane"},
    {kNew, kIsValu, 0, kIsAnyLane, 0, Overlap::kDefExec, 4,
     "EXEC written by a vector ALU instruction before v_readlane, v_readfirstlane or v_writelane"},
    // CDNA3 ISA 4.5
    {kAll, kIsValu, 0, kReadsZeroFlags, 0, Overlap::kDefVccOrExec, 5,
     "VCC or EXEC written by a vector ALU instruction before vccz or execz is read as data"},
    // checkPermlaneHazards
    {kGfx950, kIsValu, 0, kIsPermlaneSwap, 0, Overlap::kDefUseVector, 2,
     "a vector register written by a vector ALU instruction and read by a permlane swap"},
    {kGfx950, kIsCmpx, 0, kIsPermlaneSwap, 0, Overlap::kNone, 4, "v_cmpx before a permlane swap"},
    // checkMAIHazards90A
    {kAll, kIsValu, kIsMfma, kIsMfma, 0, Overlap::kDefExec, 4,
     "EXEC written by a vector ALU instruction before a matrix instruction"},
    {kAll, kIsValu, kIsMfma | kIsDot, kIsMfma, 0, Overlap::kDefUseVector, 2,
     "a vector register written by a vector ALU instruction and read by a matrix instruction"},
    // checkMAIVALUHazards
    {kAll, kIsDgemm, 0, kIsFma64, 0, Overlap::kNone, 2,
     "an fp64 matrix instruction before v_fma_f64"},
};
const int kHazardRuleCount = int(sizeof kHazardRules / sizeof *kHazardRules);

namespace {

constexpr uint8_t kAnyPasses = 0;

// wait states = passes + plus, or `plus` alone for fp64 (`fixed`).
struct MatrixRule {
  uint8_t archs;
  MatrixKind kind;
  MatrixRole role;
  uint8_t passes;               // of the first, or kAnyPasses
  uint64_t second, second_not;  // classes of the second instruction
  bool fixed;
  int8_t plus;
};

using K = MatrixKind;
using R = MatrixRole;

// The first row that fits counts. checkMAIHazards90A for A, B, C; checkMAIVALUHazards for the rest.
const MatrixRule kMatrixRules[] = {
    // C of the same registers is forwarded, but for the shortest.
    {kAll, K::kDgemm4, R::kSameC, kAnyPasses, kIsDgemm, 0, true, 4},
    {kNew, K::kXdl, R::kSameC, 2, 0, 0, true, 2},
    {kNew, K::kSingle, R::kSameC, 2, 0, 0, true, 2},
    {kAll, K::kDgemm16, R::kSameC, kAnyPasses, 0, 0, true, 0},
    {kAll, K::kXdl, R::kSameC, kAnyPasses, 0, 0, true, 0},
    {kAll, K::kSingle, R::kSameC, kAnyPasses, 0, 0, true, 0},

    {kAll, K::kDgemm16, R::kOverlapC, kAnyPasses, 0, kIsXdl, true, 9},  // gfx950: below
    {kAll, K::kDgemm4, R::kOverlapC, kAnyPasses, 0, kIsXdl, true, 4},
    {kGfx90a, K::kXdl, R::kOverlapC, kAnyPasses, kIsDgemm, 0, false, 1},
    {kGfx90a, K::kXdl, R::kOverlapC, kAnyPasses, 0, kIsDgemm, false, 0},
    {kGfx940, K::kXdl, R::kOverlapC, kAnyPasses, 0, 0, false, 1},
    {kGfx950, K::kXdl, R::kOverlapC, 2, 0, kIsXdl, false, 1},
    {kGfx950, K::kXdl, R::kOverlapC, kAnyPasses, 0, 0, false, 2},
    {kNew, K::kSingle, R::kOverlapC, kAnyPasses, 0, kIsXdl, false, 0},

    {kAll, K::kDgemm16, R::kSourceAB, kAnyPasses, 0, 0, true, 11},
    {kAll, K::kDgemm4, R::kSourceAB, kAnyPasses, 0, 0, true, 6},
    {kGfx90a, K::kXdl, R::kSourceAB, kAnyPasses, 0, 0, false, 3},
    {kGfx940, K::kXdl, R::kSourceAB, kAnyPasses, 0, 0, false, 3},
    {kGfx950, K::kXdl, R::kSourceAB, 2, 0, 0, false, 3},
    {kGfx950, K::kXdl, R::kSourceAB, kAnyPasses, 0, 0, false, 4},
    {kNew, K::kSingle, R::kSourceAB, kAnyPasses, 0, 0, false, 2},

    {kAll, K::kDgemm16, R::kMemoryRead, kAnyPasses, 0, 0, true, 18},
    {kAll, K::kDgemm4, R::kMemoryRead, kAnyPasses, 0, 0, true, 9},
    {kAll, K::kDgemm16, R::kVectorRead, kAnyPasses, 0, 0, true, 11},
    {kAll, K::kDgemm4, R::kVectorRead, kAnyPasses, 0, 0, true, 6},
    {kAll, K::kDgemm16, R::kOverwrite, kAnyPasses, 0, 0, true, 11},
    {kAll, K::kDgemm4, R::kOverwrite, kAnyPasses, 0, 0, true, 6},

    {kAll, K::kXdl, R::kWriteAfterC, kAnyPasses, 0, 0, false, -1},
};

// Reads and overwrites of fp32-accumulated results by anything that is not a matrix instruction.
int plain_use(uint8_t arch, MatrixKind kind, int passes) {
  if (arch == kGfx90a) return passes + 3;
  if (kind == MatrixKind::kSingle) return passes + 2;
  return passes + 3 + (arch == kGfx950 && passes != 2);
}

// gfx950's 16x16x4 fp64 takes 16 passes; what waits for its end waits 8 more.
bool waits_for_end(MatrixRole role) {
  return role == MatrixRole::kOverlapC || role == MatrixRole::kSourceAB ||
         role == MatrixRole::kVectorRead;
}

MatrixKind kind_of(const HazardInfo &info) {
  if (info.classes & kIsDgemm) return info.passes == 4 ? MatrixKind::kDgemm4 : MatrixKind::kDgemm16;
  return info.classes & kIsXdl ? MatrixKind::kXdl : MatrixKind::kSingle;
}

}  // namespace

int matrix_wait_states(uint8_t arch, const HazardInfo &first, const HazardInfo &second,
                       MatrixRole role) {
  const MatrixKind kind = kind_of(first);
  const bool dgemm = first.classes & kIsDgemm;
  const bool plain = role == MatrixRole::kVectorRead || role == MatrixRole::kMemoryRead ||
                     role == MatrixRole::kOverwrite;
  if (plain && !dgemm) return plain_use(arch, kind, first.passes);
  // gfx90a forwards fp64 results to C of the others.
  if (arch == kGfx90a && dgemm && !(second.classes & kIsDgemm) &&
      (role == MatrixRole::kSameC || role == MatrixRole::kOverlapC))
    return 0;
  for (const MatrixRule &r : kMatrixRules) {
    if (!(r.archs & arch) || r.kind != kind || r.role != role) continue;
    if (r.passes != kAnyPasses && r.passes != first.passes) continue;
    if ((second.classes & r.second) != r.second || (second.classes & r.second_not)) continue;
    const int extra =
        arch == kGfx950 && kind == MatrixKind::kDgemm16 && waits_for_end(role) ? 8 : 0;
    return (r.fixed ? 0 : first.passes) + r.plus + extra;
  }
  return 0;
}

const char *matrix_role_name(MatrixRole role) {
  switch (role) {
    case MatrixRole::kSourceAB:
      return "the result of a matrix instruction read as A, B or scale";
    case MatrixRole::kSameC:
      return "the result of a matrix instruction read as C";
    case MatrixRole::kOverlapC:
      return "the result of a matrix instruction read as an overlapping C";
    case MatrixRole::kVectorRead:
      return "the result of a matrix instruction read by a vector ALU instruction";
    case MatrixRole::kMemoryRead:
      return "the result of a matrix instruction read by a memory instruction";
    case MatrixRole::kOverwrite:
      return "the result of a matrix instruction overwritten";
    case MatrixRole::kWriteAfterC:
      return "C of a matrix instruction overwritten while it is read";
  }
  return "";
}

}  // namespace flydsl::emu::checks
