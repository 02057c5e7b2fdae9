set(FLYDSL_EMU_TIMING_SOURCES
  timing/constants.cc
  timing/lds_conflicts.cc
  timing/record.cc
)
