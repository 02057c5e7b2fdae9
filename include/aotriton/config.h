/* Which AOTriton release the headers of this folder stand for: libaotriton_v2.so here is this project's, with the interface of
 * AOTriton. Two parameter layouts exist, and the library takes both at run time:
 *
 *   AOTRITON_VERSION_MINOR   attn_fwd_params, attn_bwd_params   for PyTorch sources
 *   14 (default)             versions 4 and 7                   that know VarlenBits (AOTRITON_VARLEN_BITS_API)
 *   13, 12                   versions 3 and 6                   that do not, but know LazyTensor *self (HolderType)
 *
 * Define AOTRITON_VERSION_MINOR for the compiler to choose (docs/pytorch.md). */
#ifndef AOTRITON_V2_CONFIG_H
#define AOTRITON_V2_CONFIG_H

#define AOTRITON_VERSION_MAJOR 0
#ifndef AOTRITON_VERSION_MINOR
#define AOTRITON_VERSION_MINOR 14
#endif
#define AOTRITON_VERSION_PATCH 0

#if AOTRITON_VERSION_MINOR < 12 || AOTRITON_VERSION_MINOR > 14
#error "AOTRITON_VERSION_MINOR: these headers stand for AOTriton 0.12, 0.13 and 0.14"
#endif

/* No suffix: the namespace is aotriton. */
#define AOTRITON_ENABLE_SUFFIX 0
#define AOTRITON_NAME_SUFFIX
#define AOTRITON_NS aotriton

#define AOTRITON_API __attribute__((visibility("default")))

#endif
