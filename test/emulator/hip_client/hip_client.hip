// A HIP program as anyone would write it, compiled against HIP's own headers; nothing in it knows of
// the emulator. Prints PASS, or what was wrong.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const hipError_t code = (call);                                                        \
    if (code != hipSuccess) {                                                              \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(code));  \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)
#define REQUIRE(condition)                                              \
  do {                                                                  \
    if (!(condition)) {                                                 \
      std::printf("%s:%d: not: %s\n", __FILE__, __LINE__, #condition);  \
      std::exit(1);                                                     \
    }                                                                   \
  } while (0)

__constant__ float weights[4];
__device__ int calls = 0;

template <typename T>
__global__ void axpy(T factor, const T *x, T *y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = factor * x[i] + y[i];
}

// Sums each block's values through LDS and adds the sum to *total.
__global__ void block_sum(const float *values, float *total, int count) {
  extern __shared__ float partial[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] = i < count ? values[i] * weights[i % 4] : 0.0f;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    atomicAdd(total, partial[0]);
    atomicAdd(&calls, 1);
  }
}

__global__ void transpose(const int *in, int *out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[x * height + y] = in[y * width + x];
}

static void add_one(void *data) {
  ++*static_cast<int *>(data);
}

static void vectors() {
  constexpr int kCount = 1000;
  std::vector<double> x(kCount), y(kCount);
  for (int i = 0; i < kCount; ++i) x[i] = i, y[i] = 2 * i;
  double *dx = nullptr, *dy = nullptr;
  CHECK(hipMalloc(&dx, kCount * sizeof(double)));
  CHECK(hipMalloc(&dy, kCount * sizeof(double)));
  hipStream_t stream;
  hipEvent_t start, stop;
  CHECK(hipStreamCreate(&stream));
  CHECK(hipEventCreate(&start));
  CHECK(hipEventCreate(&stop));
  CHECK(hipMemcpyAsync(dx, x.data(), kCount * sizeof(double), hipMemcpyHostToDevice, stream));
  CHECK(hipMemcpyAsync(dy, y.data(), kCount * sizeof(double), hipMemcpyHostToDevice, stream));
  CHECK(hipEventRecord(start, stream));
  axpy<double><<<(kCount + 127) / 128, 128, 0, stream>>>(0.5, dx, dy, kCount);
  CHECK(hipGetLastError());
  CHECK(hipEventRecord(stop, stream));
  int flag = 41;
  CHECK(hipLaunchHostFunc(stream, add_one, &flag));
  CHECK(hipMemcpyAsync(y.data(), dy, kCount * sizeof(double), hipMemcpyDeviceToHost, stream));
  CHECK(hipStreamSynchronize(stream));
  float milliseconds = -1;
  CHECK(hipEventElapsedTime(&milliseconds, start, stop));
  REQUIRE(milliseconds >= 0);
  REQUIRE(flag == 42);
  for (int i = 0; i < kCount; ++i) REQUIRE(y[i] == 2.5 * i);
  CHECK(hipEventDestroy(start));
  CHECK(hipEventDestroy(stop));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(dx));
  CHECK(hipFree(dy));
}

static void symbols_and_shared_memory() {
  constexpr int kCount = 777, kBlock = 256, kBlocks = (kCount + kBlock - 1) / kBlock;
  const float host_weights[4] = {1, -2, 3, 0.5f};
  CHECK(hipMemcpyToSymbol(HIP_SYMBOL(weights), host_weights, sizeof host_weights));
  float *managed = nullptr;
  CHECK(hipMallocManaged(&managed, (kCount + 1) * sizeof(float)));
  double expected = 0;
  for (int i = 0; i < kCount; ++i) {
    managed[i] = static_cast<float>(i % 7);
    expected += managed[i] * host_weights[i % 4];
  }
  managed[kCount] = 0;
  hipLaunchKernelGGL(block_sum, dim3(kBlocks), dim3(kBlock), kBlock * sizeof(float), nullptr,
                     managed, managed + kCount, kCount);
  CHECK(hipGetLastError());
  CHECK(hipDeviceSynchronize());
  REQUIRE(std::fabs(managed[kCount] - expected) < 1e-3);
  int host_calls = 0;
  CHECK(hipMemcpyFromSymbol(&host_calls, HIP_SYMBOL(calls), sizeof host_calls));
  REQUIRE(host_calls == kBlocks);
  CHECK(hipFree(managed));
}

static void two_dimensions_in_a_graph() {
  constexpr int kWidth = 37, kHeight = 21;
  std::vector<int> in(kWidth * kHeight), out(kWidth * kHeight, -1);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * 3);
  int *pinned = nullptr, *din = nullptr, *dout = nullptr;
  CHECK(hipHostMalloc(&pinned, in.size() * sizeof(int)));
  CHECK(hipMalloc(&din, in.size() * sizeof(int)));
  CHECK(hipMalloc(&dout, in.size() * sizeof(int)));
  hipStream_t stream;
  CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  CHECK(hipMemcpyAsync(din, pinned, in.size() * sizeof(int), hipMemcpyHostToDevice, stream));
  const dim3 block(16, 8), grid((kWidth + 15) / 16, (kHeight + 7) / 8);
  transpose<<<grid, block, 0, stream>>>(din, dout, kWidth, kHeight);
  CHECK(hipMemcpyAsync(pinned, dout, in.size() * sizeof(int), hipMemcpyDeviceToHost, stream));
  hipGraph_t graph;
  hipGraphExec_t exec;
  CHECK(hipStreamEndCapture(stream, &graph));
  CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < in.size(); ++i) pinned[i] = in[i] + round;
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        REQUIRE(pinned[x * kHeight + y] == in[y * kWidth + x] + round);
  }
  CHECK(hipGraphExecDestroy(exec));
  CHECK(hipGraphDestroy(graph));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipHostFree(pinned));
  CHECK(hipFree(din));
  CHECK(hipFree(dout));
}

static void questions() {
  int count = 0, grid = 0, block = 0, active = 0;
  CHECK(hipGetDeviceCount(&count));
  REQUIRE(count >= 1);
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  REQUIRE(properties.warpSize == 64);
  hipFuncAttributes attributes;
  CHECK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void *>(block_sum)));
  REQUIRE(attributes.maxThreadsPerBlock == 1024);
  CHECK(hipOccupancyMaxPotentialBlockSize(&grid, &block, block_sum, 0, 0));
  REQUIRE(grid >= properties.multiProcessorCount && block >= 64);
  CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&active, block_sum, 256, 1024));
  REQUIRE(active >= 1);
  axpy<float><<<1, 2048>>>(1.0f, nullptr, nullptr, 0);
  REQUIRE(hipGetLastError() == hipErrorInvalidConfiguration);
  REQUIRE(hipGetLastError() == hipSuccess);
}

int main() {
  vectors();
  symbols_and_shared_memory();
  two_dimensions_in_a_graph();
  questions();
  std::printf("PASS\n");
  return 0;
}
