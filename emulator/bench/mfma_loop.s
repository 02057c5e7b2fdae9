// Matrix instructions back to back: 8 of 32x32x16 and 8 of 16x16x32 bf16 a round.
.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
  s_mov_b32 s0, 2000
.set i, 0
.rept 16
  v_mov_b32 v[i], 0x3c003c00
  .set i, i + 1
.endr
.rept 48
  v_mov_b32 v[i], 0
  .set i, i + 1
.endr
loop:
.rept 4
  v_mfma_f32_32x32x16_bf16 v[16:31], v[0:3], v[4:7], v[16:31]
  v_mfma_f32_32x32x16_bf16 v[32:47], v[8:11], v[12:15], v[32:47]
  v_mfma_f32_16x16x32_bf16 v[48:51], v[0:3], v[4:7], v[48:51]
  v_mfma_f32_16x16x32_bf16 v[52:55], v[8:11], v[12:15], v[52:55]
.endr
  s_sub_u32 s0, s0, 1
  s_cmp_lg_u32 s0, 0
  s_cbranch_scc1 loop
  s_endpgm
