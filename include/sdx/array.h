/* Arrays for C: a part of <sdx/array.hpp>. Link libsdx_array. The rules of <sdx/sdx.h> apply: nothing throws, errors are
 * statuses with sdx_last_error(), and the caller frees objects.
 * An sdx_array is a handle to an immutable array that is computed when its numbers are requested. Operations take handles and
 * return new ones; the caller keeps the inputs. Any number of threads may use one array at once. Shapes are int64_t extents,
 * outermost first; element types use the numbers of ONNX (1 float32, 6 int32, 7 int64, 9 bool, 11 float64, ...). Negative axes
 * count from the end. Operations run in the calling thread's default stream. */
#ifndef SDX_ARRAY_H
#define SDX_ARRAY_H

#include <sdx/sdx.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdx_array sdx_array;

/* --- making and reading ------------------------------------------------------------------------------------------------ */

/* A copy of `bytes` bytes at `data`. */
SDX_C_API sdx_status sdx_array_from_data(sdx_dtype dtype, const int64_t* shape, size_t rank, const void* data, size_t bytes,
                                         sdx_array** out);
/* All elements are `value`. */
SDX_C_API sdx_status sdx_array_full(sdx_dtype dtype, const int64_t* shape, size_t rank, double value, sdx_array** out);
/* start, start + step, ... up to but excluding `stop`. */
SDX_C_API sdx_status sdx_array_arange(sdx_dtype dtype, double start, double stop, double step, sdx_array** out);
/* Random numbers: `name` is "uniform" (from a up to but excluding b), "normal" (mean a, standard deviation b) or "randint"
 * (integers from a up to but excluding b). Uses the process's random state, which sdx_array_seed() sets. */
SDX_C_API sdx_status sdx_array_random(const char* name, sdx_dtype dtype, const int64_t* shape, size_t rank, double a, double b,
                                      sdx_array** out);
SDX_C_API sdx_status sdx_array_seed(uint64_t seed);
/* Another handle to the same array. */
SDX_C_API sdx_status sdx_array_share(const sdx_array* array, sdx_array** out);
SDX_C_API void sdx_array_free(sdx_array* array);

/* Known immediately, without computing. */
SDX_C_API sdx_dtype sdx_array_dtype(const sdx_array* array);
SDX_C_API size_t sdx_array_rank(const sdx_array* array);
SDX_C_API const int64_t* sdx_array_shape(const sdx_array* array);
SDX_C_API size_t sdx_array_count(const sdx_array* array); /* elements */
SDX_C_API size_t sdx_array_bytes(const sdx_array* array);

/* Computes several arrays in one pass; work they share is done once. */
SDX_C_API sdx_status sdx_array_eval(const sdx_array* const* arrays, size_t count);
/* Computes the array and returns its elements, row-major; they live as long as the handle. */
SDX_C_API sdx_status sdx_array_data(const sdx_array* array, const void** data);

/* --- operations -------------------------------------------------------------------------------------------------------- */

/* By the name that <sdx/array.hpp> and mlx.core have: "negative", "exp", "tanh", "sigmoid", "isnan", ...; two operands: "add",
 * "maximum", "less", "matmul", ... Operands broadcast, types promote. SDX_INVALID_ARGUMENT for an unknown name, with the closest.
 */
SDX_C_API sdx_status sdx_array_unary(const char* name, const sdx_array* a, sdx_array** out);
SDX_C_API sdx_status sdx_array_binary(const char* name, const sdx_array* a, const sdx_array* b, sdx_array** out);
/* "sum", "mean", "prod", "max", "min", "any", "all", "var", "std", "logsumexp", "softmax", "argmax", "argmin", "cumsum", "sort",
 * ...: over the axes; `axes` NULL means all. argmax, argmin, cumsum and sort take one axis. `keep` not 0: reduced axes stay, with
 * extent 1. */
SDX_C_API sdx_status sdx_array_reduce(const char* name, const sdx_array* a, const int* axes, size_t axis_count, int keep,
                                      sdx_array** out);
SDX_C_API sdx_status sdx_array_where(const sdx_array* condition, const sdx_array* a, const sdx_array* b, sdx_array** out);
SDX_C_API sdx_status sdx_array_astype(const sdx_array* a, sdx_dtype dtype, sdx_array** out);
/* One extent may be -1: it is inferred. */
SDX_C_API sdx_status sdx_array_reshape(const sdx_array* a, const int64_t* shape, size_t rank, sdx_array** out);
SDX_C_API sdx_status sdx_array_broadcast_to(const sdx_array* a, const int64_t* shape, size_t rank, sdx_array** out);
/* `axes` NULL reverses the axes. */
SDX_C_API sdx_status sdx_array_transpose(const sdx_array* a, const int* axes, size_t axis_count, sdx_array** out);
SDX_C_API sdx_status sdx_array_concatenate(const sdx_array* const* arrays, size_t count, int axis, sdx_array** out);
/* Elements start[i], start[i] + step[i], ... before stop[i], for each axis. */
SDX_C_API sdx_status sdx_array_slice(const sdx_array* a, const int64_t* start, const int64_t* stop, const int64_t* step,
                                     size_t rank, sdx_array** out);
/* The elements with these indices along an axis. */
SDX_C_API sdx_status sdx_array_take(const sdx_array* a, const sdx_array* indices, int axis, sdx_array** out);

/* --- backends and streams ---------------------------------------------------------------------------------------------- */

/* Chooses "cpu", "cuda", "metal", "webgpu", "onnx" or "auto". SDX_PROVIDER_UNAVAILABLE, with the reason, if this machine does not
 * have it; SDX_INVALID_ARGUMENT for an unknown name. The initial backend comes from SDX_BACKEND or MLX_BACKEND, else "auto". */
SDX_C_API sdx_status sdx_array_set_backend(const char* name);

/* The backend in use. The strings live until this thread calls sdx_array_backend() again. */
typedef struct sdx_backend {
  const char* backend; /* "cpu", "cuda", "metal", "webgpu", "onnx" */
  const char* device;  /* the device's name */
  const char* version; /* version of the backend */
  const char* why;     /* why others cannot be used here; "" if all can */
  int64_t memory;      /* device memory in bytes; 0: unknown */
} sdx_backend;
SDX_C_API sdx_status sdx_array_backend(sdx_backend* backend);

/* Creates a stream and returns its number; sets the calling thread's default stream. Work within one stream runs in order;
 * several streams run concurrently. */
SDX_C_API sdx_status sdx_array_new_stream(int* stream);
SDX_C_API sdx_status sdx_array_set_stream(int stream);
/* Starts computing and returns without waiting. */
SDX_C_API sdx_status sdx_array_async_eval(const sdx_array* const* arrays, size_t count);
/* Waits until all work in the stream is done; -1: the calling thread's default stream. */
SDX_C_API sdx_status sdx_array_synchronize(int stream);

#ifdef __cplusplus
}
#endif

#endif
