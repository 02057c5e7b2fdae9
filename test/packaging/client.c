/* A program of somebody else's: the norm of one row on the device that FLYDSL_AOT_DEVICE names. Prints where the archive is; exit
 * status 0 if every element is right. With -DBY_DLOPEN the library is the file named by the first argument, and nothing is linked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flydsl_aot/flydsl_aot.h"

#ifdef BY_DLOPEN
#include <dlfcn.h>
#define GET(name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name)
#else
#define GET(name) __typeof__(&name) p_##name = &name
#endif

enum { kColumns = 96 };

int main(int argc, char **argv) {
#ifdef BY_DLOPEN
  void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
#else
  (void)argc, (void)argv;
#endif
  GET(flydsl_aot_version);
  GET(flydsl_aot_last_error);
  GET(flydsl_aot_open);
  GET(flydsl_aot_get_info);
  GET(flydsl_aot_device_malloc);
  GET(flydsl_aot_device_upload);
  GET(flydsl_aot_device_download);
  GET(flydsl_aot_device_free);
  GET(flydsl_aot_device_synchronize);
  GET(flydsl_aot_rms_norm);
  GET(flydsl_aot_close);
#define CHECK(call)                                              \
  if ((call) != FLYDSL_AOT_OK) {                                 \
    fprintf(stderr, "%s: %s\n", #call, p_flydsl_aot_last_error()); \
    return 1;                                                    \
  }
  if (p_flydsl_aot_version() != FLYDSL_AOT_VERSION) {
    fprintf(stderr, "headers are of version %d, the library of %u\n", FLYDSL_AOT_VERSION, p_flydsl_aot_version());
    return 1;
  }
  flydsl_aot_handle *handle = NULL;
  CHECK(p_flydsl_aot_open(NULL, &handle));
  flydsl_aot_info info = {.struct_size = sizeof info};
  CHECK(p_flydsl_aot_get_info(handle, &info));
  printf("version %u\narchive %s\ndevice %s\n", p_flydsl_aot_version(), info.archive_path, info.device_name);

  float x[kColumns], out[kColumns];
  double squares = 0;
  for (int n = 0; n < kColumns; ++n) {
    x[n] = (float)(n % 17) - 7.5f;
    squares += (double)x[n] * x[n];
  }
  void *device_x = NULL, *device_out = NULL;
  CHECK(p_flydsl_aot_device_malloc(handle, sizeof x, &device_x));
  CHECK(p_flydsl_aot_device_malloc(handle, sizeof out, &device_out));
  CHECK(p_flydsl_aot_device_upload(handle, device_x, x, sizeof x));
  flydsl_aot_rms_norm_params params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  params.x = (flydsl_aot_tensor){.data = device_x, .dtype = FLYDSL_AOT_FP32, .rank = 2, .sizes = {1, kColumns}, .strides = {kColumns, 1}};
  params.out = params.x;
  params.out.data = device_out;
  CHECK(p_flydsl_aot_rms_norm(handle, &params, NULL));
  CHECK(p_flydsl_aot_device_synchronize(handle));
  CHECK(p_flydsl_aot_device_download(handle, out, device_out, sizeof out));
  CHECK(p_flydsl_aot_device_free(handle, device_x));
  CHECK(p_flydsl_aot_device_free(handle, device_out));
  p_flydsl_aot_close(handle);
  for (int n = 0; n < kColumns; ++n) {
    const double expected = x[n] / sqrt(squares / kColumns);
    if (!(fabs(out[n] - expected) <= ldexp(fabs(expected), -17))) {
      fprintf(stderr, "element %d is %.9g, not %.9g\n", n, out[n], expected);
      return 1;
    }
  }
  puts("right");
  return 0;
}
