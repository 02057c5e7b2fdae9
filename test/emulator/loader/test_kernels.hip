// Kernels of the loader's and the HIP layer's tests. They use what the loader has to get right: arguments by value and by
// pointer, static and dynamic LDS, variables in memory, hidden arguments.
#define KERNEL extern "C" __attribute__((global))

typedef unsigned int u32;
typedef unsigned long u64;

struct Scale {
  float factor;
  char padding[3];
  double offset;
};

__attribute__((device)) int counter = 41;
__attribute__((device)) int *counter_address = &counter;  // needs a relocation
__attribute__((constant)) float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};

static __attribute__((device)) inline u32 global_id() {
  return __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
}

KERNEL void vector_add(const float *a, const float *b, float *out, u32 count) {
  const u32 i = global_id();
  if (i < count) out[i] = a[i] + b[i];
}

KERNEL void scale_by_value(float *data, u32 count, Scale scale, signed char sign) {
  const u32 i = global_id();
  if (i < count) data[i] = (data[i] * scale.factor + (float)scale.offset) * (float)sign;
}

// Reverses each group's 64 values: through static LDS, and through dynamic LDS behind it.
extern __attribute__((shared)) u32 dynamic_lds[];
KERNEL void reverse_static(u32 *data) {
  __attribute__((shared)) static u32 tile[64];
  const u32 lane = __builtin_amdgcn_workitem_id_x();
  tile[lane] = data[global_id()];
  __builtin_amdgcn_s_barrier();
  data[global_id()] = tile[63 - lane];
}
KERNEL void reverse_dynamic(u32 *data) {
  const u32 lane = __builtin_amdgcn_workitem_id_x();
  dynamic_lds[lane] = data[global_id()];
  __builtin_amdgcn_s_barrier();
  data[global_id()] = dynamic_lds[63 - lane];
}

KERNEL void read_variables(int *out) {
  out[0] = counter;
  out[1] = *counter_address;
  out[2] = (int)table[__builtin_amdgcn_workgroup_id_x() & 3];
  counter += 1;
}

// The hidden arguments of code object v5, at their fixed places.
KERNEL void hidden_arguments(u32 *out) {
  const char __attribute__((address_space(4))) *hidden =
      (const char __attribute__((address_space(4))) *)__builtin_amdgcn_implicitarg_ptr();
  typedef const u32 __attribute__((address_space(4))) *u32_pointer;
  typedef const unsigned short __attribute__((address_space(4))) *u16_pointer;
  typedef const u64 __attribute__((address_space(4))) *u64_pointer;
  if (__builtin_amdgcn_workgroup_id_x() != 0 || __builtin_amdgcn_workitem_id_x() != 0) return;
  for (int i = 0; i < 3; ++i) {
    out[i] = ((u32_pointer)(hidden + 0))[i];
    out[3 + i] = ((u16_pointer)(hidden + 12))[i];
    out[6 + i] = ((u16_pointer)(hidden + 18))[i];
    out[9 + i] = (u32)((u64_pointer)(hidden + 40))[i];
  }
  out[12] = *(u16_pointer)(hidden + 64);
}

// Writes one element past the end that `count` states.
KERNEL void write_past_end(float *out, u32 count) {
  const u32 i = global_id();
  if (i <= count) out[i] = 1.0f;
}

KERNEL __attribute__((amdgpu_flat_work_group_size(1, 128))) void at_most_128(u32 *out) {
  out[global_id()] = 7;
}

// Each group counts itself in and waits for all others; then it notes the count. For cooperative launches.
KERNEL void grid_barrier(u32 *state, u32 groups) {
  if (__builtin_amdgcn_workitem_id_x() != 0) return;
  __hip_atomic_fetch_add(state, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
  while (__hip_atomic_load(state, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < groups) __builtin_amdgcn_s_sleep(1);
  state[1 + __builtin_amdgcn_workgroup_id_x()] = __hip_atomic_load(state, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
