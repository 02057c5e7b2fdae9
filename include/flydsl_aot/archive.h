/* Reading a kernel archive (docs/archive-format.md) without a device: what `flydsl-aot archive` uses. */
#ifndef FLYDSL_AOT_ARCHIVE_H
#define FLYDSL_AOT_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "flydsl_aot/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flydsl_aot_archive flydsl_aot_archive;

/* One kernel of an archive. Set struct_size before the call. Strings live as long as the archive. */
typedef struct flydsl_aot_archive_entry {
  uint32_t struct_size;
  uint32_t wave_size;
  const char *name;       /* kernel instance, unique in the archive */
  const char *op;         /* operator, e.g. "attention_forward" */
  const char *backend;    /* "native", ... */
  const char *target_id;  /* e.g. "gfx950" */
  const char *symbol;     /* kernel symbol inside the code object */
  const char *grid_rule;  /* launch geometry, e.g. "linear_tiles" */
  uint64_t kernarg_layout_id;
  uint32_t kernarg_bytes;
  uint32_t block[3];      /* work-group size in work-items */
  uint32_t tile[3];       /* parameters of the grid rule */
  uint32_t lds_static_bytes;
  uint32_t lds_dynamic_bytes;
  uint32_t scratch_bytes; /* per work-item */
  uint32_t vgpr_count;    /* vector registers, architectural + accumulation */
  uint32_t sgpr_count;
  uint64_t compressed_bytes;
  uint64_t image_bytes;   /* code object, uncompressed */
} flydsl_aot_archive_entry;

/* Opens and checks header and index; code objects are not read. Errors: INVALID_ARGUMENT, ARCHIVE_*. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_archive_open(const char *path, flydsl_aot_archive **archive);
FLYDSL_AOT_API void flydsl_aot_archive_close(flydsl_aot_archive *archive);

/* Number of kernels. 0 for NULL. */
FLYDSL_AOT_API uint32_t flydsl_aot_archive_count(const flydsl_aot_archive *archive);
/* Architecture family, e.g. "gfx950". */
FLYDSL_AOT_API const char *flydsl_aot_archive_arch(const flydsl_aot_archive *archive);
/* 1 if its kernels were executed, on a device or on the emulator, before they were handed out; 0 if they were only compiled, and for
 * NULL. */
FLYDSL_AOT_API uint32_t flydsl_aot_archive_executed(const flydsl_aot_archive *archive);

FLYDSL_AOT_API flydsl_aot_status flydsl_aot_archive_get(const flydsl_aot_archive *archive, uint32_t index,
                                                        flydsl_aot_archive_entry *entry);

/* Reads entry `index`, checks its checksum and inflates it: into `image` of `capacity` bytes if image is
 * not NULL (INVALID_ARGUMENT if smaller than image_bytes), else only as a check. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_archive_read(const flydsl_aot_archive *archive, uint32_t index,
                                                         void *image, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
