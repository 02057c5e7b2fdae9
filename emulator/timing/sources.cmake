set(FLYDSL_EMU_TIMING_SOURCES
  timing/compute_unit.cc
  timing/constants.cc
  timing/costs.cc
  timing/lds_conflicts.cc
  timing/record.cc
)
