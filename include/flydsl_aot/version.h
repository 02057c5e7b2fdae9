/* Version of the flydsl_aot C ABI. Part of libflydsl_aot; see flydsl_aot.h. */
#ifndef FLYDSL_AOT_VERSION_H
#define FLYDSL_AOT_VERSION_H

#define FLYDSL_AOT_VERSION_MAJOR 0
#define FLYDSL_AOT_VERSION_MINOR 1
#define FLYDSL_AOT_VERSION_PATCH 0
/* major * 10000 + minor * 100 + patch: what flydsl_aot_version() of the matching library returns. */
#define FLYDSL_AOT_VERSION                                                                         \
  (FLYDSL_AOT_VERSION_MAJOR * 10000 + FLYDSL_AOT_VERSION_MINOR * 100 + FLYDSL_AOT_VERSION_PATCH)

#if defined(_WIN32)
#define FLYDSL_AOT_API
#else
#define FLYDSL_AOT_API __attribute__((visibility("default")))
#endif

#endif
