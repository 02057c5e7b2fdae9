/* Status codes of the flydsl_aot C ABI.
 *
 * Every function that can fail returns a flydsl_aot_status. FLYDSL_AOT_OK is 0, everything else is an
 * error. Codes come in families of one hundred with gaps, so that a family can grow without
 * renumbering: test the family with FLYDSL_AOT_STATUS_FAMILY(status). The numbers are ABI. */
#ifndef FLYDSL_AOT_STATUS_H
#define FLYDSL_AOT_STATUS_H

#include <stdint.h>

#include "flydsl_aot/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t flydsl_aot_status;

enum {
  FLYDSL_AOT_OK = 0,

  /* 1xx: the caller's arguments contradict this header. Nothing was touched or launched. */
  FLYDSL_AOT_INVALID_ARGUMENT = 100,    /* null where an object is required, unknown enum value */
  FLYDSL_AOT_INVALID_STRUCT_SIZE = 101, /* struct_size is none that this library knows */
  FLYDSL_AOT_INVALID_SHAPE = 110,       /* rank or sizes wrong, or operands that disagree */
  FLYDSL_AOT_INVALID_STRIDE = 111,      /* strides wrong, e.g. last axis not contiguous */
  FLYDSL_AOT_INVALID_DTYPE = 112,       /* operands whose dtypes disagree, unknown dtype */
  FLYDSL_AOT_INVALID_POINTER = 113,     /* null or misaligned data of a non-empty tensor; overlap */
  FLYDSL_AOT_INVALID_MASK = 120,        /* bound below -1, or a finite bound without an anchor */
  FLYDSL_AOT_INVALID_SCALE = 121,       /* scale is NaN, infinite or out of range */
  FLYDSL_AOT_INVALID_WORKSPACE = 122,   /* workspace missing or smaller than the query said */

  /* 2xx: valid arguments, but nothing here implements them. Nothing was touched or launched. */
  FLYDSL_AOT_UNSUPPORTED_DTYPE = 200,
  FLYDSL_AOT_UNSUPPORTED_HEAD_DIM = 201,
  FLYDSL_AOT_UNSUPPORTED_ARCH = 202,    /* no archive for this architecture */
  FLYDSL_AOT_UNSUPPORTED_FEATURE = 203, /* e.g. a sliding window where none was built */
  FLYDSL_AOT_UNSUPPORTED_SIZE = 204,    /* beyond a stated limit of the operator */
  FLYDSL_AOT_NEVER_EXECUTED = 205,      /* the kernels of this architecture were compiled, never executed; library.h says how to
                                           allow them */
  FLYDSL_AOT_NO_KERNEL = 210,           /* the archive holds no instance that fits */

  /* 3xx: kernel archives. */
  FLYDSL_AOT_ARCHIVE_NOT_FOUND = 300,
  FLYDSL_AOT_ARCHIVE_IO = 301,      /* could not be read; the message carries errno's text */
  FLYDSL_AOT_ARCHIVE_CORRUPT = 302, /* damaged: checksum, bounds or structure */
  FLYDSL_AOT_ARCHIVE_VERSION = 303, /* format version this library does not read */
  FLYDSL_AOT_ARCHIVE_MISMATCH = 304, /* another build: kernel argument layouts differ */

  /* 4xx: the device side. The library keeps no state of a failure: the next call is tried anew. Where a call launches several kernels and
   * the runtime refuses a later one (DEVICE_ERROR, DEVICE_LOST), those before it run: outputs are then unspecified. */
  FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND = 400, /* no usable HIP runtime or emulator library */
  FLYDSL_AOT_NO_DEVICE = 401,                /* runtime present, but no device (or opened without) */
  FLYDSL_AOT_DEVICE_ERROR = 402,             /* the runtime refused; message has its code and text */
  FLYDSL_AOT_OUT_OF_DEVICE_MEMORY = 403,
  FLYDSL_AOT_DEVICE_LOST = 404,         /* a kernel fault or hardware error, maybe of earlier work, ended the use of the device */
  FLYDSL_AOT_KERNEL_LOAD_FAILED = 405,  /* the runtime refused a kernel's code object or symbol; nothing was launched */
  FLYDSL_AOT_PROCESS_FORKED = 406,      /* the device was in use before this process was forked: HIP does not survive that */
  FLYDSL_AOT_COMPILER_NOT_FOUND = 407,       /* the kernel has to be compiled at run time, and there is no usable hipRTC */
  FLYDSL_AOT_COMPILE_FAILED = 408,           /* hipRTC did not compile a kernel; message has its first lines; nothing was launched */
  FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH = 410, /* first use inside graph capture: prefetch the kernel */

  /* 5xx: the host side. */
  FLYDSL_AOT_OUT_OF_HOST_MEMORY = 500,
  FLYDSL_AOT_INTERNAL = 510 /* a bug in this library; please report the message */
};

#define FLYDSL_AOT_STATUS_FAMILY(status) ((status) / 100)

/* The enumerator's name without its prefix, e.g. "UNSUPPORTED_DTYPE"; "UNKNOWN_STATUS" for a number
 * that is none of the above. Static storage, never null, callable from any thread at any time. */
FLYDSL_AOT_API const char *flydsl_aot_status_name(flydsl_aot_status status);

/* One English sentence for the status, without a trailing period. Static storage, never null. */
FLYDSL_AOT_API const char *flydsl_aot_status_string(flydsl_aot_status status);

/* The message of this thread's last failed call: the function, which argument, the value seen, what is allowed.
 * Empty string before the first failure; successful calls leave it as it was. The text is UTF-8,
 * owned by the library and valid until the same thread's next failing call. */
FLYDSL_AOT_API const char *flydsl_aot_last_error(void);

/* Makes "<function>: <message>" the thread's last message, and logs it, as a failing call does: for libraries over this one
 * that find a fault themselves. NULL counts as the empty string; returns `status`. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_set_last_error(flydsl_aot_status status, const char *function,
                                                           const char *message);

#ifdef __cplusplus
}
#endif

#endif
