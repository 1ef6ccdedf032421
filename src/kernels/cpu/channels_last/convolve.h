#pragma once
// Convolutions with channels last, of one to three axes, and their transposes: x [N, ..., C], weights [O, ..., C / groups], y
// [N, ..., O]. Float32 and float64, none of them empty. Thread-safe; split over current_pool().

#include "kernels/cpu/channels_last/windows.h"

namespace sdx::cpu {

template <class T>
void convolve(const Windows& w, const T* x, const T* weights, T* y);
template <class T>
void convolve_input(const Windows& w, const T* y, const T* weights, T* x);
// Sums depend on the number of threads.
template <class T>
void convolve_weights(const Windows& w, const T* x, const T* y, T* weights);

}  // namespace sdx::cpu
