/* Opening the library on a device or for a named architecture, and asking what it found. */
#ifndef FLYDSL_AOT_LIBRARY_H
#define FLYDSL_AOT_LIBRARY_H

#include <stdint.h>

#include "flydsl_aot/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An opened library: a device runtime, kernel archives and a cache of loaded kernels. Opaque. All
 * functions that take a handle may be called from any thread at the same time, except
 * flydsl_aot_close, after which the handle is gone. */
typedef struct flydsl_aot_handle flydsl_aot_handle;

typedef int32_t flydsl_aot_device_kind;
enum {
  FLYDSL_AOT_DEVICE_DEFAULT = 0, /* environment FLYDSL_AOT_DEVICE=hip|emulator|none, else hip */
  FLYDSL_AOT_DEVICE_HIP = 1,
  FLYDSL_AOT_DEVICE_EMULATOR = 2, /* libflydsl_emu.so: gfx950 machine code on the CPU */
  FLYDSL_AOT_DEVICE_NONE = 3      /* queries only, for the architecture named in `arch` */
};

typedef uint32_t flydsl_aot_jit;
enum {
  FLYDSL_AOT_JIT_DEFAULT = 0, /* environment FLYDSL_AOT_JIT=on|off, else off */
  FLYDSL_AOT_JIT_OFF = 1,
  FLYDSL_AOT_JIT_ON = 2
};

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_open_options), then what you need. */
typedef struct flydsl_aot_open_options {
  uint32_t struct_size;
  flydsl_aot_device_kind device;
  /* Device library to dlopen; NULL: FLYDSL_AOT_HIP_LIBRARY, then a libamdhip64 already in the process,
   * then libamdhip64.so.7, .6, .5. For the emulator: FLYDSL_AOT_EMULATOR_LIBRARY, then
   * libflydsl_emu.so beside this library, then by the loader's own search. */
  const char *device_library;
  /* Architecture, e.g. "gfx950", or a target id, e.g. "gfx950:xnack-". Required with DEVICE_NONE. With HIP or
   * the emulator it must be NULL or fit the current device; a mismatch is UNSUPPORTED_ARCH. */
  const char *arch;
  /* Archive file, or directory that holds flydsl_aot.<arch>.fda; NULL: the environment's
   * FLYDSL_AOT_ARCHIVE_PATH (colon-separated) if set, else beside this library, then ../share/flydsl_aot. The first
   * archive of the architecture is the answer: one that is damaged or of another build is an error, not
   * passed over. */
  const char *archive_path;
  /* The most kernels that stay loaded on each device; 0: all that were used. A first use beyond it waits for the device's work and
   * unloads the kernels that were not used for the longest time. Kernels of calls in progress stay whatever the number is, and so
   * do for the handle's life those that its calls put into a capture: the graph goes on using them. While a stream of the handle's
   * calls is being captured nothing is unloaded; a capture of other work must not be in progress at such a first use, since HIP ends
   * every capture where the device is waited for. */
  uint32_t max_loaded_kernels;
  /* Whether kernels may be compiled where the archive has none that fits: see below. */
  flydsl_aot_jit jit;
  /* Names of kernels, with commas, that are to run whatever else fits; NULL: the environment's
   * FLYDSL_AOT_FORCE_KERNEL. A call of such a kernel's operator is NO_KERNEL if none of them fits as the kernel that the
   * query names; further kernels of a call are chosen as always unless one of theirs is named, too. Names that the
   * archive does not have are refused here. */
  const char *force_kernel;
  /* Backends whose kernels may run, with commas: native, aiter, triton, flydsl, jit; NULL: the environment's
   * FLYDSL_AOT_BACKENDS, else all. It is about the kernel that the query names; what a call launches before and after it (sums,
   * conversions) is chosen as always. */
  const char *backends;
} flydsl_aot_open_options;

/* FLYDSL_AOT_TUNING=off in the environment of flydsl_aot_open: the archive's tuning rows are not looked at, each problem gets the
 * first kernel that fits. */

/* FLYDSL_AOT_ENABLE_EXPERIMENTAL=1 in the environment of flydsl_aot_open: calls may run kernels of architectures on which none was
 * ever executed, neither on a device nor on the emulator (flydsl_aot_archive_executed). Without it such a device can be opened, but
 * its calls, queries and prefetches are NEVER_EXECUTED. */

/* Run-time compilation (jit). Where no kernel of the archive fits, a call's first use of a kernel, or its prefetch, may compile one
 * from the sources in this library, with hipRTC: attention of head dims that no archive has, and on architectures without an archive,
 * which can then be opened, too, norms, their gradients, TopK, mx_quantise, attention and products (general kernels; an archive that
 * was named and is not there stays ARCHIVE_NOT_FOUND). That takes seconds for each kernel. Where it is off, messages say what it could do. The
 * result is kept on disk, in FLYDSL_AOT_JIT_CACHE_DIR, else $XDG_CACHE_HOME/flydsl_aot/jit, else $HOME/.cache/flydsl_aot/jit, up to
 * FLYDSL_AOT_JIT_CACHE_BYTES bytes (default 268435456; 0: nothing is kept), those last that were used last; a disk that is full or
 * read-only costs only that. hipRTC is loaded when it is first needed: FLYDSL_AOT_HIPRTC_LIBRARY and nothing else if that is set; the
 * emulator's own with the emulator; else libhiprtc already in the process, beside the HIP runtime or found by the loader, or the
 * runtime itself. Without one, calls and queries that need it are COMPILER_NOT_FOUND. Such kernels have backend "jit": a query's
 * reason, with status OK, and explain say that the kernel would be compiled. */

/* FLYDSL_AOT_VERBOSE in the environment of flydsl_aot_open: "stderr", or a file that is made or added to. Each call of an
 * operator through the handle that succeeds then writes a CSV row (RFC 4180; a row is one write):
 *   time         UTC, 2026-01-31T23:59:59.999999Z, when the call had returned
 *   operator     as in the names of its functions
 *   problem      its parameters, as fields.h says; replayable: flydsl-aot run --replay FILE (or explain --replay FILE)
 *   kernel       the kernels it launched, in their order, with + between; empty: there was nothing to compute
 *   backend      of the first of them
 *   archive      path
 *   tuning row   what decided on the first of them: "forced", a row of the archive's tuning table, "compiled": it is not in the
 *                archive, or "-": the first that fits
 *   host ns      nanoseconds from entry to return; a kernel's first use contains its loading
 * The first line names the columns. */

/* flydsl_aot_open: finds the device runtime and the archive of its current device's architecture.
 * options may be NULL (all defaults). On success *handle must be given to flydsl_aot_close; on failure
 * *handle is NULL. Does not allocate device memory or load kernels.
 * Errors: INVALID_*, DEVICE_LIBRARY_NOT_FOUND, NO_DEVICE, DEVICE_ERROR, PROCESS_FORKED,
 * UNSUPPORTED_ARCH, ARCHIVE_*. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_open(const flydsl_aot_open_options *options,
                                                 flydsl_aot_handle **handle);

/* Unloads the handle's kernels and frees it. The caller makes sure that no call is running and that the
 * device has finished the work launched through it. NULL is ignored. */
FLYDSL_AOT_API void flydsl_aot_close(flydsl_aot_handle *handle);

/* FLYDSL_AOT_VERSION of the library that was loaded. */
FLYDSL_AOT_API uint32_t flydsl_aot_version(void);

/* What an opened handle stands on. Set struct_size before the call. The strings are owned by the handle
 * and live as long as it does; none is NULL, unknown ones are empty. */
typedef struct flydsl_aot_info {
  uint32_t struct_size;
  flydsl_aot_device_kind device; /* HIP, EMULATOR (also when it was opened as a HIP library) or NONE */
  const char *device_library;    /* path of the runtime in use */
  const char *device_name;
  const char *arch;          /* e.g. "gfx950" */
  const char *target_id;     /* e.g. "gfx950:sramecc+:xnack-" */
  const char *archive_path;  /* the .fda in use */
  uint32_t runtime_version;  /* as hipRuntimeGetVersion reports it; 0 without a device */
  uint32_t compute_units;    /* of the device that was current at open: calls on every device are planned for so many; 0 without one */
  uint32_t kernel_count;     /* kernels in the archive */
  uint32_t device_count;
} flydsl_aot_info;

FLYDSL_AOT_API flydsl_aot_status flydsl_aot_get_info(const flydsl_aot_handle *handle,
                                                     flydsl_aot_info *info);

/* Answer of an operator's query. Set struct_size before the call. */
typedef struct flydsl_aot_query_result {
  uint32_t struct_size;
  flydsl_aot_status status;  /* what the call itself would return for these parameters */
  uint64_t workspace_bytes;  /* device workspace the call needs; 0: none */
  char kernel[128];          /* kernel that would run; empty when none is needed or none fits */
  char backend[32];          /* "native", ... */
  char reason[256];          /* why not, when status is not OK; that the kernel would be compiled, when it is; NUL-terminated,
                                maybe shortened */
} flydsl_aot_query_result;

/* One candidate considered for a problem, as an operator's explain reports it. The strings are valid
 * during the callback only. */
typedef struct flydsl_aot_candidate {
  uint32_t struct_size;
  int32_t taken;       /* 1 for the one that would run */
  const char *kernel;
  const char *backend;
  const char *reason;  /* why it was taken or refused */
  int32_t fits;        /* 1 if it can compute the problem, whether it is taken or not */
  int32_t main;        /* 1 if it is for the kernel that the query names, 0 for others of the same call */
  const char *problem; /* what selection looked at, "name=value ...": the fields of the functional key, then rows, keys,
                          parallel, alignment and compute_units (docs/archive-format.md, "Tuning") */
} flydsl_aot_candidate;

typedef void (*flydsl_aot_candidate_callback)(void *user, const flydsl_aot_candidate *candidate);

#ifdef __cplusplus
}
#endif

#endif
