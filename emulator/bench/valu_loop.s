// A mixed loop of vector instructions with all lanes enabled: 32 VALU, 3 scalar instructions a round.
.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
  v_mov_b32 v1, 1.0
  v_mov_b32 v2, 0.5
  v_mov_b32 v3, 2.0
  v_mov_b32 v4, 7
  s_mov_b32 s2, 0x3f800123
  s_mov_b32 s0, 40000
loop:
.rept 2
  v_add_f32 v5, v1, v2
  v_mul_f32 v6, v5, v3
  v_fma_f32 v7, v5, v6, v1
  v_fmac_f32 v1, v2, v2
  v_max_f32 v8, v7, v6
  v_add_u32 v9, v4, v0
  v_lshlrev_b32 v10, 3, v9
  v_and_b32 v11, 0xff, v10
  v_mul_f32 v12, s2, v7
  v_cmp_gt_f32 vcc, v12, v5
  v_cndmask_b32 v13, v12, v5, vcc
  v_add3_u32 v14, v9, v10, v11
  v_lshl_add_u32 v15, v14, 2, v9
  v_pk_mul_f32 v[16:17], v[6:7], v[12:13]
  v_sub_f32 v18, v16, v17
  v_xor_b32 v4, v15, v4
.endr
  s_sub_u32 s0, s0, 1
  s_cmp_lg_u32 s0, 0
  s_cbranch_scc1 loop
  s_endpgm
