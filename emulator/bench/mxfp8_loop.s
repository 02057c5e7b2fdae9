// Scaled matrix instructions on E4M3 with E8M0 scales: 8 of 32x32x64 and 8 of 16x16x128 a round.
.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
  s_mov_b32 s0, 500
.set i, 0
.rept 32
  v_mov_b32 v[i], 0x38b4302c
  .set i, i + 1
.endr
.rept 48
  v_mov_b32 v[i], 0
  .set i, i + 1
.endr
  v_mov_b32 v80, 0x7f7e807f
  v_mov_b32 v81, 0x7e7f7f80
loop:
.rept 4
  v_mfma_scale_f32_32x32x64_f8f6f4 v[32:47], v[0:7], v[8:15], v[32:47], v80, v81 op_sel_hi:[0,0,0]
  v_mfma_scale_f32_32x32x64_f8f6f4 v[48:63], v[16:23], v[24:31], v[48:63], v80, v81 op_sel_hi:[0,0,0]
  v_mfma_scale_f32_16x16x128_f8f6f4 v[64:67], v[0:7], v[8:15], v[64:67], v80, v81 op_sel_hi:[0,0,0]
  v_mfma_scale_f32_16x16x128_f8f6f4 v[68:71], v[16:23], v[24:31], v[68:71], v80, v81 op_sel_hi:[0,0,0]
.endr
  s_sub_u32 s0, s0, 1
  s_cmp_lg_u32 s0, 0
  s_cbranch_scc1 loop
  s_endpgm
