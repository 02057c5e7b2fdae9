/* What libflydsl_emu.so offers besides HIP. Plain C. */
#ifndef FLYDSL_EMU_H
#define FLYDSL_EMU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set struct_size = sizeof(flydsl_emu_dispatch) before the call. */
typedef struct flydsl_emu_dispatch {
  uint32_t struct_size;
  uint64_t wave_instructions; /* executed, all waves together */
  uint64_t mfma_flops;        /* multiplications and additions of matrix instructions */
  double host_seconds;        /* the emulation itself: says nothing about the speed of a device */
} flydsl_emu_dispatch;

/* E.g. "0.1.0". */
const char *flydsl_emu_version(void);

/* The text of the process's most recent kernel fault: kernel, work-group, wave, lane, instruction
 * and what it did. Empty when there was none. Valid until the calling thread calls this again. */
const char *flydsl_emu_last_fault(void);

/* Why the calling thread's most recent refused HIP call was refused: which argument, the value
 * seen, what is allowed. Empty when there was none. Valid until the thread's next HIP call. With
 * the environment variable FLYDSL_EMU_LOG set, each such text also goes to stderr. */
const char *flydsl_emu_last_error(void);

/* Counts of the calling thread's most recent launch, which it waits for, as far as struct_size has
 * room. 0; or 1 when the thread launched nothing yet, or a thousand launches of other threads ago, or
 * the argument is null or too small. */
int flydsl_emu_last_dispatch(flydsl_emu_dispatch *result);

/* The timing model (emulator/timing/), process-wide from the next launch on, whatever FLYDSL_EMU_TIMING
 * says: "off"; "sample": only the work-groups that the model needs run, so outputs are incomplete;
 * "full": all run. NULL: as FLYDSL_EMU_TIMING says again. A kernel of a graph keeps what held when it
 * was added. gfx950 only. 0; or 1 for another word (flydsl_emu_last_error). A launch that the model
 * cannot follow is refused, or faults with a sentence that names the instruction. */
int flydsl_emu_set_timing(const char *mode);

/* What the model says about the calling thread's most recent launch, which it waits for: JSON, one
 * line, keys in emulator/timing/README.md. Every figure is modelled, none was measured on a device.
 * detail 1 adds "profile", the instructions with issues and stalls, and "timeline". Empty when the
 * launch was not modelled (flydsl_emu_last_error). Valid until the thread's next launch, or a thousand
 * launches of other threads. */
const char *flydsl_emu_last_timing(int detail);

/* Launches by the calling thread so far; kernels of graphs do not count. */
uint64_t flydsl_emu_launch_count(void);

/* What flydsl_emu_last_timing says, of the thread's most recent launch but `back`: 0 is that one. The last
 * 16 of a thread are kept. Valid until the thread has made 16 - back more, or as long as above. */
const char *flydsl_emu_recent_timing(uint64_t back, int detail);

/* Set struct_size = sizeof(flydsl_emu_benchmark_result) before the call. */
typedef struct flydsl_emu_benchmark_result {
  uint32_t struct_size;
  double valu_wave_instructions_per_s; /* full-EXEC vector instructions */
  double mfma_bf16_flop_per_s;
  double mfma_mxfp8_flop_per_s;
} flydsl_emu_benchmark_result;

/* Speed of the emulation on this host, one thread, about a second; says nothing about a device. 0; or 1 when the
 * argument is null or too small, or a loop did not run (flydsl_emu_last_error). */
int flydsl_emu_benchmark(flydsl_emu_benchmark_result *result);

#ifdef __cplusplus
}
#endif

#endif
