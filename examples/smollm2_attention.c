/* How a C program calls the library: attention of two layers of SmolLM2-135M-Instruct, checked in
 * float64.
 *
 *   smollm2_attention <folder with layer00_q.npy ...> [emulator|hip]
 *
 * For each layer: read Q, K and V (bf16), put them on the device, query, call, wait, fetch, and
 * compare every element with the same attention in float64. Exit status 0 if every element is
 * within its bound, 1 if not, 2 if something failed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "flydsl_aot/flydsl_aot.h"

enum { kHeadsQ = 9, kHeadsKv = 3, kTokens = 509, kHeadDim = 64, kGroup = kHeadsQ / kHeadsKv };

static const float kScale = 0.125f;

static void stop(const char *what, const char *why) {
  fprintf(stderr, "error: %s: %s\n", what, why);
  exit(2);
}

static void check(flydsl_aot_status status, const char *what) {
  if (status != FLYDSL_AOT_OK) stop(what, flydsl_aot_last_error());
}

/* The data of a version 1.0 .npy file of `elements` uint16 values (the tool's reader, tools/npy.cc,
 * is the general one). */
static uint16_t *read_bf16(const char *folder, int layer, const char *name, size_t elements) {
  char path[4096];
  unsigned char prefix[10];
  uint16_t *data = malloc(elements * sizeof *data);
  FILE *file;
  snprintf(path, sizeof path, "%s/layer%02d_%s.npy", folder, layer, name);
  file = fopen(path, "rb");
  if (!data || !file) stop(path, "cannot be opened");
  if (fread(prefix, 1, sizeof prefix, file) != sizeof prefix ||
      memcmp(prefix, "\x93NUMPY\x01", 7) != 0 ||
      fseek(file, prefix[8] | prefix[9] << 8, SEEK_CUR) != 0 ||
      fread(data, sizeof *data, elements, file) != elements || fgetc(file) != EOF) {
    stop(path, "is not the expected array");
  }
  fclose(file);
  return data;
}

static double from_bf16(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* A dense (1, heads, tokens, head dim) bf16 tensor in device memory, filled from `host` unless that
 * is NULL. */
static flydsl_aot_tensor device_tensor(flydsl_aot_handle *handle, int64_t heads,
                                       const uint16_t *host) {
  const size_t bytes = (size_t)heads * kTokens * kHeadDim * sizeof(uint16_t);
  flydsl_aot_tensor tensor = {
      .dtype = FLYDSL_AOT_BF16,
      .rank = 4,
      .sizes = {1, heads, kTokens, kHeadDim},
      .strides = {heads * kTokens * kHeadDim, kTokens * kHeadDim, kHeadDim, 1},
  };
  check(flydsl_aot_device_malloc(handle, bytes, &tensor.data), "device memory");
  if (host) check(flydsl_aot_device_upload(handle, tensor.data, host, bytes), "upload");
  return tensor;
}

/* Compares with float64. Bound per element: 1.25 * 2^-8 * (|reference| + the same attention of
 * |V|), 2^-8 being the unit roundoff of bf16, in which the weights and the result are rounded.
 * Returns the worst error over its bound. */
static double worst_error(const uint16_t *q, const uint16_t *k, const uint16_t *v,
                          const uint16_t *out, const float *lse, double *worst_lse) {
  static double weights[kTokens];
  double worst = 0;
  int h, i, j, d;
  *worst_lse = 0;
  for (h = 0; h < kHeadsQ; ++h) {
    const uint16_t *head_k = k + (size_t)(h / kGroup) * kTokens * kHeadDim;
    const uint16_t *head_v = v + (size_t)(h / kGroup) * kTokens * kHeadDim;
    for (i = 0; i < kTokens; ++i) {
      const size_t row = (size_t)h * kTokens + i;
      double maximum = -INFINITY, sum = 0;
      for (j = 0; j <= i; ++j) { /* causal */
        double dot = 0;
        for (d = 0; d < kHeadDim; ++d)
          dot += from_bf16(q[row * kHeadDim + d]) * from_bf16(head_k[j * kHeadDim + d]);
        weights[j] = kScale * dot;
        if (weights[j] > maximum) maximum = weights[j];
      }
      for (j = 0; j <= i; ++j) sum += weights[j] = exp(weights[j] - maximum);
      *worst_lse = fmax(*worst_lse, fabs(lse[row] - (maximum + log(sum))));
      for (d = 0; d < kHeadDim; ++d) {
        double reference = 0, magnitude = 0, error, bound;
        for (j = 0; j <= i; ++j) {
          const double term = weights[j] / sum * from_bf16(head_v[j * kHeadDim + d]);
          reference += term;
          magnitude += fabs(term);
        }
        error = fabs(from_bf16(out[row * kHeadDim + d]) - reference);
        bound = 1.25 / 256 * (fabs(reference) + magnitude);
        /* A NaN compares false: it counts as infinitely wrong. */
        worst = error <= bound
                    ? fmax(worst, bound > 0 ? error / bound : 0)
                    : (error < INFINITY && bound > 0 ? fmax(worst, error / bound) : INFINITY);
      }
    }
  }
  return worst;
}

static int run_layer(flydsl_aot_handle *handle, const char *folder, int layer, int emulated) {
  const size_t q_elements = (size_t)kHeadsQ * kTokens * kHeadDim,
               kv_elements = (size_t)kHeadsKv * kTokens * kHeadDim;
  uint16_t *q = read_bf16(folder, layer, "q", q_elements);
  uint16_t *k = read_bf16(folder, layer, "k", kv_elements);
  uint16_t *v = read_bf16(folder, layer, "v", kv_elements);
  uint16_t *out = malloc(q_elements * sizeof *out);
  float *lse = malloc((size_t)kHeadsQ * kTokens * sizeof *lse);
  flydsl_aot_attention_forward_params params = {.struct_size = sizeof params, .scale = kScale};
  flydsl_aot_query_result plan = {.struct_size = sizeof plan};
  struct timespec begin, end;
  double worst, worst_lse;
  int pass;
  if (!out || !lse) stop("malloc", "out of memory");

  params.q = device_tensor(handle, kHeadsQ, q);
  params.k = device_tensor(handle, kHeadsKv, k);
  params.v = device_tensor(handle, kHeadsKv, v);
  params.out = device_tensor(handle, kHeadsQ, NULL);
  params.lse = (flydsl_aot_tensor){
      .dtype = FLYDSL_AOT_FP32,
      .rank = 3,
      .sizes = {1, kHeadsQ, kTokens},
      .strides = {kHeadsQ * kTokens, kTokens, 1},
  };
  check(flydsl_aot_device_malloc(handle, (size_t)kHeadsQ * kTokens * sizeof *lse, &params.lse.data),
        "device memory");
  params.mask =
      (flydsl_aot_mask){FLYDSL_AOT_UNLIMITED, 0, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0}; /* causal */

  /* Which kernel, and how much workspace? (This one needs none.) */
  check(flydsl_aot_attention_forward_query(handle, &params, &plan), "query");
  if (plan.workspace_bytes > 0)
    check(flydsl_aot_device_malloc(handle, plan.workspace_bytes, &params.workspace), "workspace");
  params.workspace_bytes = plan.workspace_bytes;

  timespec_get(&begin, TIME_UTC);
  check(flydsl_aot_attention_forward(handle, &params, NULL),
        "attention_forward"); /* on the null stream */
  check(flydsl_aot_device_synchronize(handle), "synchronize");
  timespec_get(&end, TIME_UTC);

  check(flydsl_aot_device_download(handle, out, params.out.data, q_elements * sizeof *out),
        "download");
  check(flydsl_aot_device_download(handle, lse, params.lse.data,
                                   (size_t)kHeadsQ * kTokens * sizeof *lse),
        "download");
  worst = worst_error(q, k, v, out, lse, &worst_lse);
  pass = worst <= 1 && worst_lse <= 1e-4;
  printf("layer %02d   kernel %s (%s)\n", layer, plan.kernel, plan.backend);
  printf("           host time %.1f ms%s\n",
         (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-6,
         emulated ? " (the emulator's, not a GPU's)" : "");
  printf(
      "           worst element %.3f of its bound 1.25 u (|ref| + A), worst LSE error %.2g of 1e-4 "
      "allowed: %s\n",
      worst, worst_lse, pass ? "PASS" : "FAIL");

  check(flydsl_aot_device_free(handle, params.q.data), "free");
  check(flydsl_aot_device_free(handle, params.k.data), "free");
  check(flydsl_aot_device_free(handle, params.v.data), "free");
  check(flydsl_aot_device_free(handle, params.out.data), "free");
  check(flydsl_aot_device_free(handle, params.lse.data), "free");
  check(flydsl_aot_device_free(handle, params.workspace), "free");
  free(q);
  free(k);
  free(v);
  free(out);
  free(lse);
  return pass;
}

int main(int argc, char **argv) {
  flydsl_aot_open_options options = {.struct_size = sizeof options,
                                     .device = FLYDSL_AOT_DEVICE_EMULATOR};
  flydsl_aot_info info = {.struct_size = sizeof info};
  flydsl_aot_handle *handle = NULL;
  int pass = 1;
  if (argc < 2 || argc > 3) stop("usage", "smollm2_attention FOLDER [emulator|hip]");
  if (argc == 3) {
    if (strcmp(argv[2], "hip") == 0) {
      options.device = FLYDSL_AOT_DEVICE_HIP;
    } else if (strcmp(argv[2], "emulator") != 0) {
      stop(argv[2], "must be emulator or hip");
    }
  }
  check(flydsl_aot_open(&options, &handle), "open");
  check(flydsl_aot_get_info(handle, &info), "info");
  printf(
      "device     %s%s, %s\narchive    %s\n",
      info.device == FLYDSL_AOT_DEVICE_EMULATOR ? "EMULATED on the CPU, no GPU is involved: " : "",
      info.device_name, info.target_id, info.archive_path);
  pass &= run_layer(handle, argv[1], 0, info.device == FLYDSL_AOT_DEVICE_EMULATOR);
  pass &= run_layer(handle, argv[1], 14, info.device == FLYDSL_AOT_DEVICE_EMULATOR);
  flydsl_aot_close(handle);
  printf("%s\n", pass ? "PASS" : "FAIL");
  return pass ? 0 : 1;
}
