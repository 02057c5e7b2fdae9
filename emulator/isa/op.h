// Decoded instructions and the wave state they act on: plain data shared by the decoder, the engine
// and the semantics.
//
// Semantics are compiled once per SIMD level (level.h), so nothing here may be an inline function:
// a copy compiled for AVX-512 could otherwise be the one the linker keeps for everybody.
#pragma once

#include <cstdint>

namespace flydsl::emu {

struct Op;
struct Wave;
struct Memory;

// Executes one instruction of one wave. wave.pc is already past it.
using Handler = void (*)(Wave &wave, const Op &op);

enum class Kind : uint8_t {
  kVector,    // row of the register file: 0-255 architectural, 256-511 accumulation
  kConstant,  // row of the program's constant pool (64 equal lanes; 64-bit constants take two rows)
  kScalar,   // scalar register: 0-101, 102 flat_scratch, 104 xnack_mask, 106 vcc, 108 ttmp, 124 m0,
             // 126 exec
  kSpecial,  // a Special in `index`
  kOff,      // the word `off`, or absent
};

enum class Special : uint32_t {
  kVccz,
  kExecz,
  kScc,
  kSharedBase,
  kSharedLimit,
  kPrivateBase,
  kPrivateLimit
};

constexpr unsigned kVcc = 106, kM0 = 124, kExec = 126;

enum : uint8_t { kNeg = 1, kAbs = 2, kSext = 4 };

struct Operand {
  Kind kind = Kind::kOff;
  uint8_t mods = 0;   // kNeg | kAbs | kSext
  char type = 0;      // shape letter, see row.h
  uint8_t words = 1;  // registers named in the text
  uint32_t index = 0;
};

enum : uint16_t {
  kSdwa = 1,
  kDpp = 2,
  kClamp = 4,
  kWriteSpecial = 8,  // the result does not go straight to the register: SDWA, DPP, clamp or omod
  kGlc = 32,          // sc0: an atomic returns the old value
  kLdsCopy = 64,      // buffer_load ... lds
  kOffen = 128,
  kIdxen = 256,
  kVector = 1024,  // a vector ALU instruction: relative register numbers apply
  kOpSel = 512,    // op_sel was written out
  kMode =
      4096,  // MODE is not the default: denormals and fp16 rounding need a look (set by the engine)
  kMeasured = 2048,  // matrix instruction under the model `measured` (mfma_measured.h)
};

// Which MODE bits govern the arithmetic, so that the engine sets the host's rounding and flushing
// before it. kDefault: always round to nearest even with denormals.
enum class FpClass : uint8_t { kNone, kDefault, kF32, kF64, kF16 };

// The processor the code is for, where it decides what an instruction means (fp8 is FNUZ on gfx942,
// OCP on gfx950).
enum class Architecture : uint8_t { kGfx90a, kGfx942, kGfx950 };

struct Op {
  Handler run = nullptr;
  Operand o[6];         // in the order of the text, destinations first
  int32_t imm = 0;      // memory offset in bytes, SOPP/SOPK simm16, DS offset field, bitop3 table
  int32_t target = -1;  // branches: operation index
  uint32_t next_address_low = 0;  // code offset of the following instruction, for s_getpc
  uint32_t control = 0;           // second dword of DPP and SDWA encodings
  uint16_t flags = 0;
  uint8_t operands = 0;
  uint8_t omod = 0;                                              // 1: *2, 2: *4, 3: /2
  uint8_t op_sel = 0, op_sel_hi = 0xff, neg_lo = 0, neg_hi = 0;  // one bit per source
  uint8_t cbsz = 0, abid = 0, blgp = 0;  // typed buffer accesses: data and number format
  FpClass fp = FpClass::kNone;
  Architecture architecture = Architecture::kGfx950;
  uint8_t first_source = 0;  // number of destination operands
};

constexpr uint32_t kModeFp16Ovfl = 1u << 23;
constexpr uint32_t kModeIndexing = 1u << 27;  // MODE.GPR_IDX_EN

enum class Stop : uint32_t {
  kNone,
  kEnd,      // s_endpgm
  kBarrier,  // s_barrier: wait for the other waves
  kWait,     // s_waitcnt that must land a copy to LDS: wait for the other waves to be blocked
  kYield,    // s_sleep and full quanta: let others run
  kMode,     // MODE was written: the engine looks at it again
  kFault,
};

struct Wave {
  const uint32_t *base[2];  // Kind::kVector and kConstant rows
  uint32_t *v;              // [512][64]
  const Op *ops;
  uint32_t pc = 0;  // operation index
  uint32_t scc = 0;
  Stop stop = Stop::kNone;
  uint32_t mode = 0;  // MODE register: [3:0] round, [7:4] denormals, 8 DX10_CLAMP, 9 IEEE
  alignas(64) uint32_t s[128];

  uint8_t *lds;
  uint32_t lds_bytes;
  uint8_t *scratch;  // [64][scratch_bytes]
  uint32_t scratch_bytes;
  Memory *memory;                     // region checks, faults and copies in flight: engine/memory.h
  uint64_t region_begin, region_end;  // last region that was read
  uint64_t wregion_begin, wregion_end;  // last region that was written
  uint32_t vm_issued;                   // vector memory operations so far
  uint32_t copies_pending;              // copies to LDS not yet landed
  uint64_t mfma_flops;
  uint32_t wave_in_group;
  uint32_t hw_id;

  alignas(64) uint32_t tmp[6][2 * 64];  // operands that are not plain rows
  alignas(64) uint32_t out[4 * 64];     // results on their way to masked writes
};

}  // namespace flydsl::emu
