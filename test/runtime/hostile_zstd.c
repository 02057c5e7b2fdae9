/* A libzstd that a process has loaded before this library: nothing of it may be used. */
#include <stdio.h>
#include <stdlib.h>

#define HOSTILE(name)                                                     \
  __attribute__((visibility("default"))) void name(void) {                \
    fprintf(stderr, "another library's " #name " is called\n");           \
    abort();                                                              \
  }

HOSTILE(ZSTD_createDCtx)
HOSTILE(ZSTD_freeDCtx)
HOSTILE(ZSTD_createDDict)
HOSTILE(ZSTD_freeDDict)
HOSTILE(ZSTD_decompress_usingDDict)
HOSTILE(ZSTD_getFrameContentSize)
HOSTILE(ZSTD_getErrorName)
HOSTILE(ZSTD_isError)
HOSTILE(XXH3_64bits)
HOSTILE(XXH64)
