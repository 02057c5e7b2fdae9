/* Small helpers over the handle's device runtime, for tools, tests and bindings that do not link HIP
 * themselves. Programs that already use HIP pass their own pointers and streams to the operators and need
 * none of this. All act on the runtime's current device; sizes are bytes. */
#ifndef FLYDSL_AOT_DEVICE_H
#define FLYDSL_AOT_DEVICE_H

#include <stddef.h>

#include "flydsl_aot/library.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device memory. bytes == 0 gives *pointer = NULL and OK. Errors: INVALID_ARGUMENT, NO_DEVICE,
 * OUT_OF_DEVICE_MEMORY, DEVICE_ERROR. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_device_malloc(flydsl_aot_handle *handle, size_t bytes,
                                                          void **pointer);
/* NULL is ignored. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_device_free(flydsl_aot_handle *handle, void *pointer);

/* Memory of the device that owns `stream`, allocated and freed in the stream's order (hipMallocAsync, hipFreeAsync): no wait, and
 * what was freed serves later calls of the stream. bytes == 0 gives NULL and OK, NULL is ignored. Errors: those of
 * flydsl_aot_device_malloc, and UNSUPPORTED_FEATURE where the runtime has no such calls. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_device_malloc_async(flydsl_aot_handle *handle, size_t bytes,
                                                                void *stream, void **pointer);
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_device_free_async(flydsl_aot_handle *handle, void *pointer,
                                                              void *stream);

/* Which device a stream belongs to. Set struct_size before the call; target_id is owned by the handle. */
typedef struct flydsl_aot_stream_info {
  uint32_t struct_size;
  int32_t device;
  const char *target_id; /* e.g. "gfx950:sramecc+:xnack-" */
  uint32_t compute_units;
  int32_t served;    /* 1 if the handle's kernels are for this device */
  int32_t capturing; /* 1 while the stream is captured into a graph */
  int32_t reserved;  /* 0 */
} flydsl_aot_stream_info;

/* NULL is the null stream of the current device. Errors: INVALID_*, NO_DEVICE, DEVICE_ERROR. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_device_stream_info(flydsl_aot_handle *handle, void *stream,
                                                               flydsl_aot_stream_info *info);

/* Blocking copies between host and device memory; both wait for earlier work on the null stream. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_device_upload(flydsl_aot_handle *handle, void *device_dst,
                                                          const void *host_src, size_t bytes);
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_device_download(flydsl_aot_handle *handle, void *host_dst,
                                                            const void *device_src, size_t bytes);

/* Waits for all work of the current device; reports a fault of an earlier launch as DEVICE_LOST. As with HIP itself a
 * kernel fault is final for the process's use of that device: later calls may keep reporting it, and what they
 * return or leave in memory is not to be trusted. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_device_synchronize(flydsl_aot_handle *handle);

#ifdef __cplusplus
}
#endif

#endif
