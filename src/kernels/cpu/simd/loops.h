#pragma once
// For plain loops that the compiler should vectorise although an output may be the same array as an input: iterations are
// independent, so it need not check for overlap at run time (when in place, such a check would choose the scalar loop).
#if defined(__clang__)
// That is a permission: where nothing is gained, as for structures and for very few iterations, Clang need not say so.
#pragma clang diagnostic ignored "-Wpass-failed"
#define SDX_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SDX_INDEPENDENT _Pragma("GCC ivdep")
#endif
