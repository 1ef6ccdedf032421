/* The C interface of libsdx: small and stable. Functions never throw and never abort on bad input.
 *
 * Ownership: sdx_*_create/open/run return objects that the caller frees with the matching sdx_*_free (which accept NULL). Strings
 * and arrays returned as const pointers belong to the object they came from and live as long as it does. Threads: an sdx_session
 * may be used by any number of threads at once; other objects by one thread at a time. The message of sdx_last_error() is kept
 * per thread. Sizes: shapes are int64_t extents, outermost first; data are dense, row-major, in the machine's byte order. 4- and
 * 2-bit types are packed, low bits first. */
#ifndef SDX_SDX_H
#define SDX_SDX_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SDX_C_API __attribute__((visibility("default")))
#else
#define SDX_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows at the end only. */
typedef enum sdx_status {
  SDX_OK = 0,
  SDX_INVALID_MODEL = 1,
  SDX_INVALID_ARGUMENT = 2,
  SDX_NOT_IMPLEMENTED = 3,
  SDX_PROVIDER_UNAVAILABLE = 4,
  SDX_OUT_OF_MEMORY = 5,
  SDX_IO = 6,
  SDX_RUNTIME_FAILURE = 7,
  SDX_CANCELLED = 8,
  SDX_DEADLINE_EXCEEDED = 9,
  SDX_INTERNAL = 10
} sdx_status;

/* Element types: the numbers of ONNX's TensorProto.DataType (1 float32, 2 uint8, 3 int8, 6 int32, 7 int64, 8 string, 9 bool,
 * 10 float16, 11 float64, 16 bfloat16, ...). */
typedef int32_t sdx_dtype;

typedef struct sdx_session sdx_session;
typedef struct sdx_tensor sdx_tensor;
typedef struct sdx_options sdx_options;
typedef struct sdx_cancel sdx_cancel;

SDX_C_API const char* sdx_version(void);
SDX_C_API const char* sdx_status_name(sdx_status status);
/* Message of the last call that failed on this thread; "" if none did. */
SDX_C_API const char* sdx_last_error(void);

/* Options of a session; every setter may be left out. */
SDX_C_API sdx_options* sdx_options_create(void);
SDX_C_API void sdx_options_free(sdx_options* options);
/* Any option by its name (docs/options.md), from text: ("threads", "2"), ("memory_limit", "512MB"), ("provider_timeout", "2s"),
 * ("runtime", "native"). Lists and maps get one more item: ("dimensions", "batch=4"). SDX_INVALID_ARGUMENT, with the closest
 * match, for an unknown name or word and a number out of range. */
SDX_C_API sdx_status sdx_options_set(sdx_options* options, const char* name, const char* value);

/* The same with types. Numbers out of range and unknown words are SDX_INVALID_ARGUMENT. */
/* Adds a provider to the chain, by short or ONNX Runtime name. */
SDX_C_API sdx_status sdx_options_add_provider(sdx_options* options, const char* name);
SDX_C_API sdx_status sdx_options_set_strict(sdx_options* options, int strict);
SDX_C_API sdx_status sdx_options_set_optimize(sdx_options* options, int optimize);
SDX_C_API sdx_status sdx_options_set_threads(sdx_options* options, int threads);
/* Cores that worker threads stay on: "auto", or a list such as "0,2-3", the caller's first. */
SDX_C_API sdx_status sdx_options_set_thread_affinity(sdx_options* options, const char* cores);
SDX_C_API sdx_status sdx_options_set_memory_limit(sdx_options* options, size_t bytes);

/* Adds a shared library with operators of your own (sdx/custom_op.h). It is loaded when a session is opened. */
SDX_C_API sdx_status sdx_options_add_custom_ops(sdx_options* options, const char* library);

/* "auto", "native" (our own engine alone) or "ort" (ONNX Runtime's library). */
SDX_C_API sdx_status sdx_options_set_runtime(sdx_options* options, const char* runtime);
/* An option of one provider, by its vendor's name: ("cuda", "device_id", "1"). */
SDX_C_API sdx_status sdx_options_set_provider_option(sdx_options* options, const char* provider, const char* key,
                                                     const char* value);
/* "order" or "measured": the first of the chain, or the fastest on the first run's inputs. */
SDX_C_API sdx_status sdx_options_set_select(sdx_options* options, const char* select);
/* Not 0: measure the cpu provider's kernels for each node when the session is opened, and remember the fastest. */
SDX_C_API sdx_status sdx_options_set_tune(sdx_options* options, int tune);
/* A provider, for example "cpu", that answers while those before it in the chain compile. */
SDX_C_API sdx_status sdx_options_set_start_on(sdx_options* options, const char* provider);
/* After so many milliseconds a run is answered by the next provider; 0: never. */
SDX_C_API sdx_status sdx_options_set_provider_timeout(sdx_options* options, int64_t milliseconds);
/* After so many milliseconds a provider that failed is tried again; 0: never. */
SDX_C_API sdx_status sdx_options_set_provider_retry(sdx_options* options, int64_t milliseconds);
/* Takes NaN that only a provider other than `cpu` makes for its failure. */
SDX_C_API sdx_status sdx_options_set_reject_nan(sdx_options* options, int reject);
/* Writes what `cpu` made of a model into the cache folder, for later starts. */
SDX_C_API sdx_status sdx_options_set_keep_compiled(sdx_options* options, int keep);
/* "stderr" or a file that gets one line of JSON for each run. */
SDX_C_API sdx_status sdx_options_set_telemetry(sdx_options* options, const char* where);

/* `options` may be NULL. */
SDX_C_API sdx_status sdx_session_open(const char* path, const sdx_options* options, sdx_session** session);
SDX_C_API sdx_status sdx_session_from_bytes(const void* bytes, size_t size, const sdx_options* options, sdx_session** session);
SDX_C_API void sdx_session_free(sdx_session* session);

SDX_C_API size_t sdx_session_input_count(const sdx_session* session);
SDX_C_API size_t sdx_session_output_count(const sdx_session* session);
/* NULL when `index` is out of range. */
SDX_C_API const char* sdx_session_input_name(const sdx_session* session, size_t index);
SDX_C_API const char* sdx_session_output_name(const sdx_session* session, size_t index);
/* Element type, 0 for values that are no tensors. `rank` receives the rank, -1 if it is unknown; up to `capacity` extents are
 * written to `shape`, -1 where one is not fixed. `rank` and `shape` may be NULL. */
SDX_C_API sdx_dtype sdx_session_input_type(const sdx_session* session, size_t index, int64_t* shape, size_t capacity,
                                           int64_t* rank);
SDX_C_API sdx_dtype sdx_session_output_type(const sdx_session* session, size_t index, int64_t* shape, size_t capacity,
                                            int64_t* rank);
/* What ran where, for people. */
SDX_C_API const char* sdx_session_report(sdx_session* session);

/* A tensor of its own with a copy of `bytes` bytes at `data` (which may be NULL: uninitialised). Not for strings. */
SDX_C_API sdx_status sdx_tensor_create(sdx_dtype dtype, const int64_t* shape, size_t rank, const void* data, size_t bytes,
                                       sdx_tensor** tensor);
/* A tensor that only refers to the caller's memory, which must outlive it and every run that uses it. */
SDX_C_API sdx_status sdx_tensor_wrap(sdx_dtype dtype, const int64_t* shape, size_t rank, const void* data, size_t bytes,
                                     sdx_tensor** tensor);
SDX_C_API sdx_status sdx_tensor_create_strings(const char* const* values, const int64_t* shape, size_t rank, sdx_tensor** tensor);
SDX_C_API void sdx_tensor_free(sdx_tensor* tensor);
SDX_C_API sdx_dtype sdx_tensor_dtype(const sdx_tensor* tensor);
SDX_C_API size_t sdx_tensor_rank(const sdx_tensor* tensor);
SDX_C_API const int64_t* sdx_tensor_shape(const sdx_tensor* tensor);
SDX_C_API size_t sdx_tensor_count(const sdx_tensor* tensor); /* elements */
SDX_C_API size_t sdx_tensor_bytes(const sdx_tensor* tensor);
SDX_C_API const void* sdx_tensor_data(const sdx_tensor* tensor);
/* Element `index` of a string tensor; NULL otherwise. */
SDX_C_API const char* sdx_tensor_string(const sdx_tensor* tensor, size_t index);

SDX_C_API sdx_cancel* sdx_cancel_create(void);
SDX_C_API void sdx_cancel_free(sdx_cancel* cancel);
/* May be called from any thread. */
SDX_C_API void sdx_cancel_now(sdx_cancel* cancel);

/* Runs the model. `names[i]` is the input that `inputs[i]` is for. `output_names` may be NULL: all outputs in order, of which
 * there must be `output_count`. On success each outputs[i] is a new tensor; on failure all are NULL. Outputs that are no tensors
 * (sequences, maps) are SDX_NOT_IMPLEMENTED here. timeout_ms 0: no deadline; `cancel` may be NULL. */
SDX_C_API sdx_status sdx_session_run(const sdx_session* session, const char* const* names, const sdx_tensor* const* inputs,
                                     size_t input_count, const char* const* output_names, size_t output_count,
                                     sdx_tensor** outputs, int64_t timeout_ms, const sdx_cancel* cancel);

#ifdef __cplusplus
}
#endif

#endif
