# Run by CPack when all components lie in ${CPACK_TEMPORARY_DIRECTORY}/<component>: tarballs whose bytes depend on their
# contents and SOURCE_DATE_EPOCH alone - names in order, one date, no owner, modes that no umask decides.
set(epoch $ENV{SOURCE_DATE_EPOCH})
if(NOT epoch MATCHES "^[0-9]+$")
  message(FATAL_ERROR "SOURCE_DATE_EPOCH is '${epoch}': it must be the seconds since 1970 that all files get (packaging/tarball.sh takes the last commit's)")
endif()

function(pack name)
  set(root ${CPACK_TEMPORARY_DIRECTORY}/packed/${name})
  file(REMOVE_RECURSE ${root})
  file(MAKE_DIRECTORY ${root})
  foreach(component IN LISTS ARGN)
    set(staged ${CPACK_TEMPORARY_DIRECTORY}/${component})
    if(IS_DIRECTORY ${staged})
      file(GLOB parts ${staged}/*)
      file(COPY ${parts} DESTINATION ${root} USE_SOURCE_PERMISSIONS)
    endif()
  endforeach()
  set(tarball ${CPACK_PACKAGE_DIRECTORY}/${name}.tar.gz)
  execute_process(
    COMMAND tar --sort=name --format=gnu --mtime=@${epoch} --owner=0 --group=0 --numeric-owner --mode=u+rw,go=u-w
            -C ${CPACK_TEMPORARY_DIRECTORY}/packed -c ${name}
    COMMAND gzip -9n
    OUTPUT_FILE ${tarball} RESULTS_VARIABLE results)
  if(NOT results STREQUAL "0;0")
    message(FATAL_ERROR "${tarball}: tar and gzip ended with ${results}")
  endif()
  file(SHA256 ${tarball} hash)
  file(WRITE ${tarball}.sha256 "${hash}  ${name}.tar.gz\n")
  set(made ${made} ${tarball} PARENT_SCOPE)
endfunction()

set(made)
set(installed runtime development link tools python)
foreach(arch IN LISTS CPACK_FLYDSL_AOT_ARCHS)
  pack(${CPACK_FLYDSL_AOT_STEM}-${arch} ${installed} archive_${arch})
  if(IS_DIRECTORY ${CPACK_TEMPORARY_DIRECTORY}/aotriton)
    # PyTorch's build copies lib and include of this one (AOTRITON_INSTALLED_PREFIX).
    pack(${CPACK_FLYDSL_AOT_STEM}-${arch}-aotriton runtime aotriton archive_${arch})
  endif()
endforeach()
if(CPACK_FLYDSL_AOT_EMULATOR)
  pack(${CPACK_FLYDSL_AOT_STEM}-emulator emulator)
endif()
set(CPACK_EXTERNAL_BUILT_PACKAGES ${made})
