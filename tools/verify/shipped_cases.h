// The case lists of test/cases/, so that the command has them wherever it is.
#pragma once

namespace flydsl::verify {

extern const char *const kAttentionForwardCases, *const kAttentionDecodeCases,
    *const kAttentionBackwardCases, *const kGemmCases, *const kRmsNormCases, *const kRmsNormBackwardCases, *const kLayerNormCases, *const kLayerNormBackwardCases, *const kTopkCases, *const kTopkSoftmaxCases, *const kScaledGemmCases, *const kMxQuantiseCases, *const kGroupedGemmCases;

}  // namespace flydsl::verify
