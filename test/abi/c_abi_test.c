/* The public header used from strict C11: every function is referenced, every struct has the layout
 * that version 0.1 of the ABI fixed (LP64). A field that moves, or a status or dtype that is
 * renumbered, fails to compile. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "flydsl_aot/flydsl_aot.h"

#define FIELD(type, field, offset) \
  static_assert(offsetof(type, field) == (offset), #type "." #field " has moved")
#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size")

static_assert(sizeof(void *) == 8, "the layouts below are those of LP64");

SIZE(flydsl_aot_tensor, 144);
FIELD(flydsl_aot_tensor, data, 0);
FIELD(flydsl_aot_tensor, dtype, 8);
FIELD(flydsl_aot_tensor, rank, 12);
FIELD(flydsl_aot_tensor, sizes, 16);
FIELD(flydsl_aot_tensor, strides, 80);

SIZE(flydsl_aot_mask, 24);
FIELD(flydsl_aot_mask, left, 0);
FIELD(flydsl_aot_mask, right, 8);
FIELD(flydsl_aot_mask, anchor, 16);
FIELD(flydsl_aot_mask, reserved, 20);

SIZE(flydsl_aot_open_options, 56);
FIELD(flydsl_aot_open_options, struct_size, 0);
FIELD(flydsl_aot_open_options, device, 4);
FIELD(flydsl_aot_open_options, device_library, 8);
FIELD(flydsl_aot_open_options, arch, 16);
FIELD(flydsl_aot_open_options, archive_path, 24);
FIELD(flydsl_aot_open_options, max_loaded_kernels, 32);
FIELD(flydsl_aot_open_options, jit, 36);
FIELD(flydsl_aot_open_options, force_kernel, 40);
FIELD(flydsl_aot_open_options, backends, 48);

SIZE(flydsl_aot_info, 64);
FIELD(flydsl_aot_info, struct_size, 0);
FIELD(flydsl_aot_info, device, 4);
FIELD(flydsl_aot_info, device_library, 8);
FIELD(flydsl_aot_info, device_name, 16);
FIELD(flydsl_aot_info, arch, 24);
FIELD(flydsl_aot_info, target_id, 32);
FIELD(flydsl_aot_info, archive_path, 40);
FIELD(flydsl_aot_info, runtime_version, 48);
FIELD(flydsl_aot_info, compute_units, 52);
FIELD(flydsl_aot_info, kernel_count, 56);
FIELD(flydsl_aot_info, device_count, 60);

SIZE(flydsl_aot_stream_info, 32);
FIELD(flydsl_aot_stream_info, struct_size, 0);
FIELD(flydsl_aot_stream_info, device, 4);
FIELD(flydsl_aot_stream_info, target_id, 8);
FIELD(flydsl_aot_stream_info, compute_units, 16);
FIELD(flydsl_aot_stream_info, served, 20);
FIELD(flydsl_aot_stream_info, capturing, 24);
FIELD(flydsl_aot_stream_info, reserved, 28);

SIZE(flydsl_aot_query_result, 432);
FIELD(flydsl_aot_query_result, struct_size, 0);
FIELD(flydsl_aot_query_result, status, 4);
FIELD(flydsl_aot_query_result, workspace_bytes, 8);
FIELD(flydsl_aot_query_result, kernel, 16);
FIELD(flydsl_aot_query_result, backend, 144);
FIELD(flydsl_aot_query_result, reason, 176);

SIZE(flydsl_aot_candidate, 48);
FIELD(flydsl_aot_candidate, struct_size, 0);
FIELD(flydsl_aot_candidate, taken, 4);
FIELD(flydsl_aot_candidate, kernel, 8);
FIELD(flydsl_aot_candidate, backend, 16);
FIELD(flydsl_aot_candidate, reason, 24);
FIELD(flydsl_aot_candidate, fits, 32);
FIELD(flydsl_aot_candidate, main, 36);
FIELD(flydsl_aot_candidate, problem, 40);

SIZE(flydsl_aot_archive_entry, 128);
FIELD(flydsl_aot_archive_entry, struct_size, 0);
FIELD(flydsl_aot_archive_entry, wave_size, 4);
FIELD(flydsl_aot_archive_entry, name, 8);
FIELD(flydsl_aot_archive_entry, op, 16);
FIELD(flydsl_aot_archive_entry, backend, 24);
FIELD(flydsl_aot_archive_entry, target_id, 32);
FIELD(flydsl_aot_archive_entry, symbol, 40);
FIELD(flydsl_aot_archive_entry, grid_rule, 48);
FIELD(flydsl_aot_archive_entry, kernarg_layout_id, 56);
FIELD(flydsl_aot_archive_entry, kernarg_bytes, 64);
FIELD(flydsl_aot_archive_entry, block, 68);
FIELD(flydsl_aot_archive_entry, tile, 80);
FIELD(flydsl_aot_archive_entry, lds_static_bytes, 92);
FIELD(flydsl_aot_archive_entry, lds_dynamic_bytes, 96);
FIELD(flydsl_aot_archive_entry, scratch_bytes, 100);
FIELD(flydsl_aot_archive_entry, vgpr_count, 104);
FIELD(flydsl_aot_archive_entry, sgpr_count, 108);
FIELD(flydsl_aot_archive_entry, compressed_bytes, 112);
FIELD(flydsl_aot_archive_entry, image_bytes, 120);

SIZE(flydsl_aot_epilogue, 584);
FIELD(flydsl_aot_epilogue, bias_n, 0);
FIELD(flydsl_aot_epilogue, bias_m, 144);
FIELD(flydsl_aot_epilogue, activation, 288);
FIELD(flydsl_aot_epilogue, gradient, 292);
FIELD(flydsl_aot_epilogue, residual, 296);
FIELD(flydsl_aot_epilogue, aux, 440);

SIZE(flydsl_aot_gemm_params, 2200);
FIELD(flydsl_aot_gemm_params, struct_size, 0);
FIELD(flydsl_aot_gemm_params, alpha, 4);
FIELD(flydsl_aot_gemm_params, beta, 8);
FIELD(flydsl_aot_gemm_params, reserved, 12);
FIELD(flydsl_aot_gemm_params, a, 16);
FIELD(flydsl_aot_gemm_params, b, 160);
FIELD(flydsl_aot_gemm_params, c, 304);
FIELD(flydsl_aot_gemm_params, d, 448);
FIELD(flydsl_aot_gemm_params, a_descale, 592);
FIELD(flydsl_aot_gemm_params, b_descale, 736);
FIELD(flydsl_aot_gemm_params, d_scale, 880);
FIELD(flydsl_aot_gemm_params, epilogue, 1024);
FIELD(flydsl_aot_gemm_params, workspace, 1608);
FIELD(flydsl_aot_gemm_params, workspace_bytes, 1616);
FIELD(flydsl_aot_gemm_params, d_sum_m, 1624);
FIELD(flydsl_aot_gemm_params, d_sum_n, 1768);
FIELD(flydsl_aot_gemm_params, a_sum_m, 1912);
FIELD(flydsl_aot_gemm_params, b_sum_n, 2056);

SIZE(flydsl_aot_topk_params, 464);
FIELD(flydsl_aot_topk_params, struct_size, 0);
FIELD(flydsl_aot_topk_params, axis, 4);
FIELD(flydsl_aot_topk_params, x, 8);
FIELD(flydsl_aot_topk_params, values, 152);
FIELD(flydsl_aot_topk_params, indices, 296);
FIELD(flydsl_aot_topk_params, smallest, 440);
FIELD(flydsl_aot_topk_params, any_order, 444);
FIELD(flydsl_aot_topk_params, workspace, 448);
FIELD(flydsl_aot_topk_params, workspace_bytes, 456);

SIZE(flydsl_aot_topk_softmax_params, 440);
FIELD(flydsl_aot_topk_softmax_params, struct_size, 0);
FIELD(flydsl_aot_topk_softmax_params, chosen_only, 4);
FIELD(flydsl_aot_topk_softmax_params, x, 8);
FIELD(flydsl_aot_topk_softmax_params, weights, 152);
FIELD(flydsl_aot_topk_softmax_params, indices, 296);

SIZE(flydsl_aot_rms_norm_params, 1024);
FIELD(flydsl_aot_rms_norm_params, struct_size, 0);
FIELD(flydsl_aot_rms_norm_params, eps, 4);
FIELD(flydsl_aot_rms_norm_params, x, 8);
FIELD(flydsl_aot_rms_norm_params, weight, 152);
FIELD(flydsl_aot_rms_norm_params, weight_offset, 296);
FIELD(flydsl_aot_rms_norm_params, reserved, 300);
FIELD(flydsl_aot_rms_norm_params, residual, 304);
FIELD(flydsl_aot_rms_norm_params, sum, 448);
FIELD(flydsl_aot_rms_norm_params, out, 592);
FIELD(flydsl_aot_rms_norm_params, out_scale, 736);
FIELD(flydsl_aot_rms_norm_params, rstd, 880);
SIZE(flydsl_aot_layer_norm_params, 1312);
FIELD(flydsl_aot_layer_norm_params, struct_size, 0);
FIELD(flydsl_aot_layer_norm_params, eps, 4);
FIELD(flydsl_aot_layer_norm_params, x, 8);
FIELD(flydsl_aot_layer_norm_params, weight, 152);
FIELD(flydsl_aot_layer_norm_params, weight_offset, 296);
FIELD(flydsl_aot_layer_norm_params, reserved, 300);
FIELD(flydsl_aot_layer_norm_params, residual, 304);
FIELD(flydsl_aot_layer_norm_params, sum, 448);
FIELD(flydsl_aot_layer_norm_params, out, 592);
FIELD(flydsl_aot_layer_norm_params, out_scale, 736);
FIELD(flydsl_aot_layer_norm_params, rstd, 880);
FIELD(flydsl_aot_layer_norm_params, mean, 1024);
FIELD(flydsl_aot_layer_norm_params, bias, 1168);
SIZE(flydsl_aot_rms_norm_backward_params, 1032);
FIELD(flydsl_aot_rms_norm_backward_params, struct_size, 0);
FIELD(flydsl_aot_rms_norm_backward_params, weight_offset, 4);
FIELD(flydsl_aot_rms_norm_backward_params, x, 8);
FIELD(flydsl_aot_rms_norm_backward_params, weight, 152);
FIELD(flydsl_aot_rms_norm_backward_params, rstd, 296);
FIELD(flydsl_aot_rms_norm_backward_params, dout, 440);
FIELD(flydsl_aot_rms_norm_backward_params, dsum, 584);
FIELD(flydsl_aot_rms_norm_backward_params, dx, 728);
FIELD(flydsl_aot_rms_norm_backward_params, dweight, 872);
FIELD(flydsl_aot_rms_norm_backward_params, workspace, 1016);
FIELD(flydsl_aot_rms_norm_backward_params, workspace_bytes, 1024);
SIZE(flydsl_aot_layer_norm_backward_params, 1320);
FIELD(flydsl_aot_layer_norm_backward_params, struct_size, 0);
FIELD(flydsl_aot_layer_norm_backward_params, weight_offset, 4);
FIELD(flydsl_aot_layer_norm_backward_params, x, 8);
FIELD(flydsl_aot_layer_norm_backward_params, weight, 152);
FIELD(flydsl_aot_layer_norm_backward_params, rstd, 296);
FIELD(flydsl_aot_layer_norm_backward_params, dout, 440);
FIELD(flydsl_aot_layer_norm_backward_params, dsum, 584);
FIELD(flydsl_aot_layer_norm_backward_params, dx, 728);
FIELD(flydsl_aot_layer_norm_backward_params, dweight, 872);
FIELD(flydsl_aot_layer_norm_backward_params, workspace, 1016);
FIELD(flydsl_aot_layer_norm_backward_params, workspace_bytes, 1024);
FIELD(flydsl_aot_layer_norm_backward_params, mean, 1032);
FIELD(flydsl_aot_layer_norm_backward_params, dbias, 1176);

SIZE(flydsl_aot_attention_backward_params, 2840);
FIELD(flydsl_aot_attention_backward_params, struct_size, 0);
FIELD(flydsl_aot_attention_backward_params, scale, 4);
FIELD(flydsl_aot_attention_backward_params, q, 8);
FIELD(flydsl_aot_attention_backward_params, k, 152);
FIELD(flydsl_aot_attention_backward_params, v, 296);
FIELD(flydsl_aot_attention_backward_params, out, 440);
FIELD(flydsl_aot_attention_backward_params, lse, 584);
FIELD(flydsl_aot_attention_backward_params, dout, 728);
FIELD(flydsl_aot_attention_backward_params, dq, 872);
FIELD(flydsl_aot_attention_backward_params, dk, 1016);
FIELD(flydsl_aot_attention_backward_params, dv, 1160);
FIELD(flydsl_aot_attention_backward_params, mask, 1304);
FIELD(flydsl_aot_attention_backward_params, workspace, 1328);
FIELD(flydsl_aot_attention_backward_params, workspace_bytes, 1336);
FIELD(flydsl_aot_attention_backward_params, cu_seqlens_q, 1344);
FIELD(flydsl_aot_attention_backward_params, cu_seqlens_k, 1488);
FIELD(flydsl_aot_attention_backward_params, seqused_q, 1632);
FIELD(flydsl_aot_attention_backward_params, seqused_k, 1776);
FIELD(flydsl_aot_attention_backward_params, max_seqlen_q, 1920);
FIELD(flydsl_aot_attention_backward_params, max_seqlen_k, 1928);
FIELD(flydsl_aot_attention_backward_params, softcap, 1936);
FIELD(flydsl_aot_attention_backward_params, dropout_p, 1940);
FIELD(flydsl_aot_attention_backward_params, bias, 1944);
FIELD(flydsl_aot_attention_backward_params, visible, 2088);
FIELD(flydsl_aot_attention_backward_params, alibi_slopes, 2232);
FIELD(flydsl_aot_attention_backward_params, sinks, 2376);
FIELD(flydsl_aot_attention_backward_params, dropout_seed, 2520);
FIELD(flydsl_aot_attention_backward_params, dropout_offset, 2528);
FIELD(flydsl_aot_attention_backward_params, dropout_seed_device, 2536);
FIELD(flydsl_aot_attention_backward_params, dropout_offset_device, 2544);
FIELD(flydsl_aot_attention_backward_params, dbias, 2552);
FIELD(flydsl_aot_attention_backward_params, dsinks, 2696);

SIZE(flydsl_aot_grouped_gemm_params, 1032);
FIELD(flydsl_aot_grouped_gemm_params, struct_size, 0);
FIELD(flydsl_aot_grouped_gemm_params, scale_layout, 4);
FIELD(flydsl_aot_grouped_gemm_params, a, 8);
FIELD(flydsl_aot_grouped_gemm_params, a_scale, 152);
FIELD(flydsl_aot_grouped_gemm_params, b, 296);
FIELD(flydsl_aot_grouped_gemm_params, b_scale, 440);
FIELD(flydsl_aot_grouped_gemm_params, d, 584);
FIELD(flydsl_aot_grouped_gemm_params, offsets, 728);
FIELD(flydsl_aot_grouped_gemm_params, bias, 872);
FIELD(flydsl_aot_grouped_gemm_params, workspace, 1016);
FIELD(flydsl_aot_grouped_gemm_params, workspace_bytes, 1024);

SIZE(flydsl_aot_scaled_gemm_params, 888);
FIELD(flydsl_aot_scaled_gemm_params, struct_size, 0);
FIELD(flydsl_aot_scaled_gemm_params, scale_layout, 4);
FIELD(flydsl_aot_scaled_gemm_params, a, 8);
FIELD(flydsl_aot_scaled_gemm_params, a_scale, 152);
FIELD(flydsl_aot_scaled_gemm_params, b, 296);
FIELD(flydsl_aot_scaled_gemm_params, b_scale, 440);
FIELD(flydsl_aot_scaled_gemm_params, bias, 584);
FIELD(flydsl_aot_scaled_gemm_params, d, 728);
FIELD(flydsl_aot_scaled_gemm_params, workspace, 872);
FIELD(flydsl_aot_scaled_gemm_params, workspace_bytes, 880);

SIZE(flydsl_aot_mx_quantise_params, 464);
FIELD(flydsl_aot_mx_quantise_params, struct_size, 0);
FIELD(flydsl_aot_mx_quantise_params, scale_layout, 4);
FIELD(flydsl_aot_mx_quantise_params, rounding, 8);
FIELD(flydsl_aot_mx_quantise_params, reserved, 12);
FIELD(flydsl_aot_mx_quantise_params, seed, 16);
FIELD(flydsl_aot_mx_quantise_params, offset, 24);
FIELD(flydsl_aot_mx_quantise_params, x, 32);
FIELD(flydsl_aot_mx_quantise_params, out, 176);
FIELD(flydsl_aot_mx_quantise_params, scale, 320);

SIZE(flydsl_aot_attention_decode_params, 1648);
FIELD(flydsl_aot_attention_decode_params, struct_size, 0);
FIELD(flydsl_aot_attention_decode_params, scale, 4);
FIELD(flydsl_aot_attention_decode_params, q, 8);
FIELD(flydsl_aot_attention_decode_params, k, 152);
FIELD(flydsl_aot_attention_decode_params, v, 296);
FIELD(flydsl_aot_attention_decode_params, out, 440);
FIELD(flydsl_aot_attention_decode_params, lse, 584);
FIELD(flydsl_aot_attention_decode_params, mask, 728);
FIELD(flydsl_aot_attention_decode_params, workspace, 752);
FIELD(flydsl_aot_attention_decode_params, workspace_bytes, 760);
FIELD(flydsl_aot_attention_decode_params, seqused_k, 768);
FIELD(flydsl_aot_attention_decode_params, block_table, 912);
FIELD(flydsl_aot_attention_decode_params, max_seqlen_k, 1056);
FIELD(flydsl_aot_attention_decode_params, softcap, 1064);
FIELD(flydsl_aot_attention_decode_params, alibi_slopes, 1072);
FIELD(flydsl_aot_attention_decode_params, sinks, 1216);
FIELD(flydsl_aot_attention_decode_params, k_descale, 1360);
FIELD(flydsl_aot_attention_decode_params, v_descale, 1504);

SIZE(flydsl_aot_attention_forward_params, 2712);
FIELD(flydsl_aot_attention_forward_params, struct_size, 0);
FIELD(flydsl_aot_attention_forward_params, scale, 4);
FIELD(flydsl_aot_attention_forward_params, q, 8);
FIELD(flydsl_aot_attention_forward_params, k, 152);
FIELD(flydsl_aot_attention_forward_params, v, 296);
FIELD(flydsl_aot_attention_forward_params, out, 440);
FIELD(flydsl_aot_attention_forward_params, lse, 584);
FIELD(flydsl_aot_attention_forward_params, mask, 728);
FIELD(flydsl_aot_attention_forward_params, workspace, 752);
FIELD(flydsl_aot_attention_forward_params, workspace_bytes, 760);
FIELD(flydsl_aot_attention_forward_params, cu_seqlens_q, 768);
FIELD(flydsl_aot_attention_forward_params, cu_seqlens_k, 912);
FIELD(flydsl_aot_attention_forward_params, seqused_q, 1056);
FIELD(flydsl_aot_attention_forward_params, seqused_k, 1200);
FIELD(flydsl_aot_attention_forward_params, max_seqlen_q, 1344);
FIELD(flydsl_aot_attention_forward_params, max_seqlen_k, 1352);
FIELD(flydsl_aot_attention_forward_params, softcap, 1360);
FIELD(flydsl_aot_attention_forward_params, dropout_p, 1364);
FIELD(flydsl_aot_attention_forward_params, bias, 1368);
FIELD(flydsl_aot_attention_forward_params, visible, 1512);
FIELD(flydsl_aot_attention_forward_params, alibi_slopes, 1656);
FIELD(flydsl_aot_attention_forward_params, sinks, 1800);
FIELD(flydsl_aot_attention_forward_params, dropout_seed, 1944);
FIELD(flydsl_aot_attention_forward_params, dropout_offset, 1952);
FIELD(flydsl_aot_attention_forward_params, dropout_seed_device, 1960);
FIELD(flydsl_aot_attention_forward_params, dropout_offset_device, 1968);
FIELD(flydsl_aot_attention_forward_params, dropout_seed_out, 1976);
FIELD(flydsl_aot_attention_forward_params, dropout_offset_out, 1984);
FIELD(flydsl_aot_attention_forward_params, kept, 1992);
FIELD(flydsl_aot_attention_forward_params, block_table, 2136);
FIELD(flydsl_aot_attention_forward_params, q_descale, 2280);
FIELD(flydsl_aot_attention_forward_params, k_descale, 2424);
FIELD(flydsl_aot_attention_forward_params, v_descale, 2568);

static_assert(FLYDSL_AOT_FP64 == 1 && FLYDSL_AOT_FP32 == 2 && FLYDSL_AOT_FP16 == 3 &&
                  FLYDSL_AOT_BF16 == 4 && FLYDSL_AOT_E4M3 == 10 && FLYDSL_AOT_E5M2 == 11 &&
                  FLYDSL_AOT_E4M3_FNUZ == 12 && FLYDSL_AOT_E5M2_FNUZ == 13 &&
                  FLYDSL_AOT_E8M0 == 14 && FLYDSL_AOT_E2M1X2 == 15 && FLYDSL_AOT_INT32 == 20 &&
                  FLYDSL_AOT_INT64 == 21 && FLYDSL_AOT_BOOL == 22,
              "dtype numbers are ABI");
static_assert(FLYDSL_AOT_ANCHOR_TOP_LEFT == 1 && FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT == 2 &&
                  FLYDSL_AOT_UNLIMITED == -1,
              "mask numbers are ABI");

static int failures = 0;

static void expect(int condition, const char *what) {
  if (condition) return;
  ++failures;
  printf("FAILED: %s (last error: %s)\n", what, flydsl_aot_last_error());
}

/* Every status of the header, its number and its name. */
static const struct {
  flydsl_aot_status status;
  int number;
  const char *name;
} kStatuses[] = {
    {FLYDSL_AOT_OK, 0, "OK"},
    {FLYDSL_AOT_INVALID_ARGUMENT, 100, "INVALID_ARGUMENT"},
    {FLYDSL_AOT_INVALID_STRUCT_SIZE, 101, "INVALID_STRUCT_SIZE"},
    {FLYDSL_AOT_INVALID_SHAPE, 110, "INVALID_SHAPE"},
    {FLYDSL_AOT_INVALID_STRIDE, 111, "INVALID_STRIDE"},
    {FLYDSL_AOT_INVALID_DTYPE, 112, "INVALID_DTYPE"},
    {FLYDSL_AOT_INVALID_POINTER, 113, "INVALID_POINTER"},
    {FLYDSL_AOT_INVALID_MASK, 120, "INVALID_MASK"},
    {FLYDSL_AOT_INVALID_SCALE, 121, "INVALID_SCALE"},
    {FLYDSL_AOT_INVALID_WORKSPACE, 122, "INVALID_WORKSPACE"},
    {FLYDSL_AOT_UNSUPPORTED_DTYPE, 200, "UNSUPPORTED_DTYPE"},
    {FLYDSL_AOT_UNSUPPORTED_HEAD_DIM, 201, "UNSUPPORTED_HEAD_DIM"},
    {FLYDSL_AOT_UNSUPPORTED_ARCH, 202, "UNSUPPORTED_ARCH"},
    {FLYDSL_AOT_UNSUPPORTED_FEATURE, 203, "UNSUPPORTED_FEATURE"},
    {FLYDSL_AOT_UNSUPPORTED_SIZE, 204, "UNSUPPORTED_SIZE"},
    {FLYDSL_AOT_NO_KERNEL, 210, "NO_KERNEL"},
    {FLYDSL_AOT_ARCHIVE_NOT_FOUND, 300, "ARCHIVE_NOT_FOUND"},
    {FLYDSL_AOT_ARCHIVE_IO, 301, "ARCHIVE_IO"},
    {FLYDSL_AOT_ARCHIVE_CORRUPT, 302, "ARCHIVE_CORRUPT"},
    {FLYDSL_AOT_ARCHIVE_VERSION, 303, "ARCHIVE_VERSION"},
    {FLYDSL_AOT_ARCHIVE_MISMATCH, 304, "ARCHIVE_MISMATCH"},
    {FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND, 400, "DEVICE_LIBRARY_NOT_FOUND"},
    {FLYDSL_AOT_NO_DEVICE, 401, "NO_DEVICE"},
    {FLYDSL_AOT_DEVICE_ERROR, 402, "DEVICE_ERROR"},
    {FLYDSL_AOT_OUT_OF_DEVICE_MEMORY, 403, "OUT_OF_DEVICE_MEMORY"},
    {FLYDSL_AOT_DEVICE_LOST, 404, "DEVICE_LOST"},
    {FLYDSL_AOT_KERNEL_LOAD_FAILED, 405, "KERNEL_LOAD_FAILED"},
    {FLYDSL_AOT_PROCESS_FORKED, 406, "PROCESS_FORKED"},
    {FLYDSL_AOT_COMPILER_NOT_FOUND, 407, "COMPILER_NOT_FOUND"},
    {FLYDSL_AOT_COMPILE_FAILED, 408, "COMPILE_FAILED"},
    {FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH, 410, "CAPTURE_NEEDS_PREFETCH"},
    {FLYDSL_AOT_OUT_OF_HOST_MEMORY, 500, "OUT_OF_HOST_MEMORY"},
    {FLYDSL_AOT_INTERNAL, 510, "INTERNAL"},
};

static void check_statuses(void) {
  size_t i;
  for (i = 0; i < sizeof kStatuses / sizeof kStatuses[0]; ++i) {
    expect(kStatuses[i].status == kStatuses[i].number, kStatuses[i].name);
    expect(strcmp(flydsl_aot_status_name(kStatuses[i].status), kStatuses[i].name) == 0,
           kStatuses[i].name);
    expect(strlen(flydsl_aot_status_string(kStatuses[i].status)) > 0, kStatuses[i].name);
  }
  expect(strcmp(flydsl_aot_status_name(-7), "UNKNOWN_STATUS") == 0,
         "name of a status that is none");
  expect(flydsl_aot_status_string(-7) != NULL, "string of a status that is none");
}

static void check_dtypes(void) {
  expect(strcmp(flydsl_aot_dtype_name(FLYDSL_AOT_BF16), "bf16") == 0, "name of bf16");
  expect(strcmp(flydsl_aot_dtype_name(FLYDSL_AOT_E4M3_FNUZ), "e4m3_fnuz") == 0,
         "name of e4m3_fnuz");
  expect(strcmp(flydsl_aot_dtype_name(99), "invalid") == 0, "name of a dtype that is none");
  expect(flydsl_aot_dtype_bytes(FLYDSL_AOT_FP64) == 8 &&
             flydsl_aot_dtype_bytes(FLYDSL_AOT_BF16) == 2 &&
             flydsl_aot_dtype_bytes(FLYDSL_AOT_E2M1X2) == 1 && flydsl_aot_dtype_bytes(99) == 0,
         "bytes of dtypes");
}

/* Every function that takes a handle or an archive refuses NULL and says so; those that free ignore
 * it. */
static void check_null(void) {
  flydsl_aot_attention_forward_params params;
  flydsl_aot_attention_decode_params decode;
  flydsl_aot_attention_backward_params backward;
  flydsl_aot_grouped_gemm_params grouped;
  flydsl_aot_gemm_params gemm;
  flydsl_aot_rms_norm_params rms_norm;
  flydsl_aot_layer_norm_params layer_norm;
  flydsl_aot_rms_norm_backward_params rms_norm_backward;
  flydsl_aot_layer_norm_backward_params layer_norm_backward;
  flydsl_aot_topk_params topk;
  flydsl_aot_topk_softmax_params gate;
  flydsl_aot_query_result result;
  flydsl_aot_info info;
  flydsl_aot_archive_entry entry;
  flydsl_aot_archive *archive = NULL;
  void *pointer = NULL;
  char byte = 0;
  memset(&params, 0, sizeof params);
  memset(&decode, 0, sizeof decode);
  memset(&backward, 0, sizeof backward);
  memset(&grouped, 0, sizeof grouped);
  memset(&gemm, 0, sizeof gemm);
  memset(&rms_norm, 0, sizeof rms_norm);
  memset(&layer_norm, 0, sizeof layer_norm);
  memset(&rms_norm_backward, 0, sizeof rms_norm_backward);
  memset(&layer_norm_backward, 0, sizeof layer_norm_backward);
  memset(&topk, 0, sizeof topk);
  memset(&gate, 0, sizeof gate);
  memset(&result, 0, sizeof result);
  memset(&info, 0, sizeof info);
  memset(&entry, 0, sizeof entry);
  params.struct_size = sizeof params;
  decode.struct_size = sizeof decode;
  backward.struct_size = sizeof backward;
  grouped.struct_size = sizeof grouped;
  gemm.struct_size = sizeof gemm;
  rms_norm.struct_size = sizeof rms_norm;
  layer_norm.struct_size = sizeof layer_norm;
  rms_norm_backward.struct_size = sizeof rms_norm_backward;
  layer_norm_backward.struct_size = sizeof layer_norm_backward;
  topk.struct_size = sizeof topk;
  gate.struct_size = sizeof gate;
  result.struct_size = sizeof result;
  info.struct_size = sizeof info;
  entry.struct_size = sizeof entry;

#define REFUSES(call)                                           \
  do {                                                          \
    expect((call) == FLYDSL_AOT_INVALID_ARGUMENT, #call);       \
    expect(strlen(flydsl_aot_last_error()) > 0, #call " says"); \
  } while (0)
  REFUSES(flydsl_aot_open(NULL, NULL));
  REFUSES(flydsl_aot_get_info(NULL, &info));
  REFUSES(flydsl_aot_attention_forward_query(NULL, &params, &result));
  REFUSES(flydsl_aot_attention_forward_explain(NULL, &params, NULL, NULL));
  REFUSES(flydsl_aot_attention_forward_prefetch(NULL, &params));
  REFUSES(flydsl_aot_attention_forward(NULL, &params, NULL));
  REFUSES(flydsl_aot_attention_decode_query(NULL, &decode, &result));
  REFUSES(flydsl_aot_attention_decode_explain(NULL, &decode, NULL, NULL));
  REFUSES(flydsl_aot_attention_decode_prefetch(NULL, &decode));
  REFUSES(flydsl_aot_attention_decode(NULL, &decode, NULL));
  REFUSES(flydsl_aot_attention_backward_query(NULL, &backward, &result));
  REFUSES(flydsl_aot_attention_backward_explain(NULL, &backward, NULL, NULL));
  REFUSES(flydsl_aot_attention_backward_prefetch(NULL, &backward));
  REFUSES(flydsl_aot_attention_backward(NULL, &backward, NULL));
  REFUSES(flydsl_aot_gemm_query(NULL, &gemm, &result));
  REFUSES(flydsl_aot_gemm_explain(NULL, &gemm, NULL, NULL));
  REFUSES(flydsl_aot_gemm_prefetch(NULL, &gemm));
  REFUSES(flydsl_aot_gemm(NULL, &gemm, NULL));
  REFUSES(flydsl_aot_topk_query(NULL, &topk, &result));
  REFUSES(flydsl_aot_topk_explain(NULL, &topk, NULL, NULL));
  REFUSES(flydsl_aot_topk_prefetch(NULL, &topk));
  REFUSES(flydsl_aot_topk(NULL, &topk, NULL));
  REFUSES(flydsl_aot_topk_softmax_query(NULL, &gate, &result));
  REFUSES(flydsl_aot_topk_softmax_explain(NULL, &gate, NULL, NULL));
  REFUSES(flydsl_aot_topk_softmax_prefetch(NULL, &gate));
  REFUSES(flydsl_aot_topk_softmax(NULL, &gate, NULL));
  REFUSES(flydsl_aot_rms_norm_query(NULL, &rms_norm, &result));
  REFUSES(flydsl_aot_rms_norm_explain(NULL, &rms_norm, NULL, NULL));
  REFUSES(flydsl_aot_rms_norm_prefetch(NULL, &rms_norm));
  REFUSES(flydsl_aot_rms_norm(NULL, &rms_norm, NULL));
  REFUSES(flydsl_aot_layer_norm_query(NULL, &layer_norm, &result));
  REFUSES(flydsl_aot_layer_norm_explain(NULL, &layer_norm, NULL, NULL));
  REFUSES(flydsl_aot_layer_norm_prefetch(NULL, &layer_norm));
  REFUSES(flydsl_aot_layer_norm(NULL, &layer_norm, NULL));
  REFUSES(flydsl_aot_rms_norm_backward_query(NULL, &rms_norm_backward, &result));
  REFUSES(flydsl_aot_rms_norm_backward_explain(NULL, &rms_norm_backward, NULL, NULL));
  REFUSES(flydsl_aot_rms_norm_backward_prefetch(NULL, &rms_norm_backward));
  REFUSES(flydsl_aot_rms_norm_backward(NULL, &rms_norm_backward, NULL));
  REFUSES(flydsl_aot_layer_norm_backward_query(NULL, &layer_norm_backward, &result));
  REFUSES(flydsl_aot_layer_norm_backward_explain(NULL, &layer_norm_backward, NULL, NULL));
  REFUSES(flydsl_aot_layer_norm_backward_prefetch(NULL, &layer_norm_backward));
  REFUSES(flydsl_aot_layer_norm_backward(NULL, &layer_norm_backward, NULL));
  REFUSES(flydsl_aot_grouped_gemm_query(NULL, &grouped, &result));
  REFUSES(flydsl_aot_grouped_gemm_explain(NULL, &grouped, NULL, NULL));
  REFUSES(flydsl_aot_grouped_gemm_prefetch(NULL, &grouped));
  REFUSES(flydsl_aot_grouped_gemm(NULL, &grouped, NULL));

  flydsl_aot_scaled_gemm_params scaled;
  memset(&scaled, 0, sizeof scaled);
  scaled.struct_size = sizeof scaled;
  REFUSES(flydsl_aot_scaled_gemm_query(NULL, &scaled, &result));
  REFUSES(flydsl_aot_scaled_gemm_explain(NULL, &scaled, NULL, NULL));
  REFUSES(flydsl_aot_scaled_gemm_prefetch(NULL, &scaled));
  REFUSES(flydsl_aot_scaled_gemm(NULL, &scaled, NULL));

  flydsl_aot_mx_quantise_params quantised;
  memset(&quantised, 0, sizeof quantised);
  quantised.struct_size = sizeof quantised;
  REFUSES(flydsl_aot_mx_quantise_query(NULL, &quantised, &result));
  REFUSES(flydsl_aot_mx_quantise_explain(NULL, &quantised, NULL, NULL));
  REFUSES(flydsl_aot_mx_quantise_prefetch(NULL, &quantised));
  REFUSES(flydsl_aot_mx_quantise(NULL, &quantised, NULL));
  REFUSES(flydsl_aot_device_malloc(NULL, 1, &pointer));
  REFUSES(flydsl_aot_device_malloc_async(NULL, 1, NULL, &pointer));
  REFUSES(flydsl_aot_device_free_async(NULL, &byte, NULL));
  REFUSES(flydsl_aot_device_stream_info(NULL, NULL, NULL));
  REFUSES(flydsl_aot_device_upload(NULL, &byte, &byte, 1));
  REFUSES(flydsl_aot_device_download(NULL, &byte, &byte, 1));
  REFUSES(flydsl_aot_device_synchronize(NULL));
  REFUSES(flydsl_aot_archive_open(NULL, &archive));
  REFUSES(flydsl_aot_archive_open("some path", NULL));
  REFUSES(flydsl_aot_archive_get(NULL, 0, &entry));
  REFUSES(flydsl_aot_archive_read(NULL, 0, NULL, 0));
#undef REFUSES
  expect(flydsl_aot_set_last_error(FLYDSL_AOT_INTERNAL, "caller", "text") == FLYDSL_AOT_INTERNAL &&
             strcmp(flydsl_aot_last_error(), "caller: text") == 0,
         "a message of another library");
  flydsl_aot_close(NULL);
  flydsl_aot_archive_close(NULL);
  (void)flydsl_aot_device_free(NULL, NULL);
  expect(flydsl_aot_archive_count(NULL) == 0, "count of no archive");
  expect(flydsl_aot_archive_arch(NULL) != NULL, "architecture of no archive");
  expect(flydsl_aot_archive_executed(NULL) == 0, "kernels of no archive");
}

int main(void) {
  expect(strcmp(flydsl_aot_last_error(), "") == 0, "no error before the first failure");
  expect(flydsl_aot_version() == FLYDSL_AOT_VERSION, "library and header are of one version");
  check_statuses();
  check_dtypes();
  check_null();
  if (failures == 0) printf("C ABI: all checks passed\n");
  return failures != 0;
}
