#pragma once
// X(0) X(1) ..: for accumulators with separate names, since GCC 12 spills arrays of vectors.

#define SDX_REPEAT_4(X) X(0) X(1) X(2) X(3)
#define SDX_REPEAT_6(X) SDX_REPEAT_4(X) X(4) X(5)
#define SDX_REPEAT_12(X) SDX_REPEAT_6(X) X(6) X(7) X(8) X(9) X(10) X(11)
#define SDX_REPEAT_14(X) SDX_REPEAT_12(X) X(12) X(13)
