# The device compiler: Debian's clang 22, which needs no ROCm. Sets FLYDSL_AOT_DEVICE_CXX,
# FLYDSL_AOT_DEVICE_FLAGS, and checks that every architecture of FLYDSL_AOT_ARCHS compiles and links.
include_guard()

set(device_packages "apt-get install clang-22 lld-22 llvm-22")
find_program(FLYDSL_AOT_DEVICE_CXX NAMES clang++-22 DOC "Device compiler, clang 22")
find_program(FLYDSL_AOT_READELF NAMES llvm-readelf-22 DOC "llvm-readelf of LLVM 22")
if(NOT FLYDSL_AOT_DEVICE_CXX)
  message(FATAL_ERROR "The kernels need clang++-22, which was not found: ${device_packages}, or set "
    "FLYDSL_AOT_DEVICE_CXX, or build without kernels (FLYDSL_AOT_KERNELS=OFF).")
endif()
if(NOT FLYDSL_AOT_READELF)
  message(FATAL_ERROR "The kernels need llvm-readelf-22, which was not found: ${device_packages}, or set "
    "FLYDSL_AOT_READELF, or build without kernels (FLYDSL_AOT_KERNELS=OFF).")
endif()

# No HIP headers or device libraries; nothing but clang's own headers. SLP would form packed FP32
# arithmetic, which cannot issue under a matrix instruction.
set(FLYDSL_AOT_DEVICE_FLAGS
  -x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O3 -std=c++20
  -mcode-object-version=5 -fno-slp-vectorize -Wall -Wextra -Werror)
if(FLYDSL_AOT_REPRODUCIBLE)  # else a symbol is named after a hash of the source's path
  list(APPEND FLYDSL_AOT_DEVICE_FLAGS -fuse-cuid=none)
endif()
if(FLYDSL_AOT_KERNEL_LINES)
  list(APPEND FLYDSL_AOT_DEVICE_FLAGS
    -gline-tables-only -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -fdebug-compilation-dir=.)
endif()

execute_process(COMMAND ${FLYDSL_AOT_DEVICE_CXX} -dumpversion
  OUTPUT_VARIABLE device_version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
if(NOT result EQUAL 0 OR NOT device_version MATCHES "^22\\.")
  message(FATAL_ERROR "FLYDSL_AOT_DEVICE_CXX=${FLYDSL_AOT_DEVICE_CXX} is version '${device_version}', "
    "clang 22 is needed: ${device_packages}")
endif()

set(probe_dir ${CMAKE_BINARY_DIR}/CMakeFiles/device_toolchain)
file(MAKE_DIRECTORY ${probe_dir})
file(WRITE ${probe_dir}/probe.hip "extern \"C\" __attribute__((global)) void probe(int *out) { *out = 1; }\n")
# The same to PTX, text that NVIDIA's driver compiles: for architecture-neutral kernels on GPUs that are at hand (sm_90 in
# FLYDSL_AOT_ARCHS; development only). No NVIDIA toolkit is needed.
set(FLYDSL_AOT_PTX_FLAGS
  -x cuda --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version -O3 -std=c++20 -S -Wall -Wextra -Werror)

foreach(arch IN LISTS FLYDSL_AOT_ARCHS)
  if(arch MATCHES "^sm_")
    continue()
  endif()
  execute_process(
    COMMAND ${FLYDSL_AOT_DEVICE_CXX} ${FLYDSL_AOT_DEVICE_FLAGS} --offload-arch=${arch} probe.hip -o probe.co
    WORKING_DIRECTORY ${probe_dir} RESULT_VARIABLE result ERROR_VARIABLE message OUTPUT_QUIET)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${FLYDSL_AOT_DEVICE_CXX} cannot build for ${arch} (is lld-22 installed? "
      "${device_packages}):\n${message}")
  endif()
endforeach()
message(STATUS "Device compiler: ${FLYDSL_AOT_DEVICE_CXX} ${device_version} for ${FLYDSL_AOT_ARCHS}")
