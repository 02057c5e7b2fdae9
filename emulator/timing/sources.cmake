set(FLYDSL_EMU_TIMING_SOURCES
  timing/constants.cc
)
