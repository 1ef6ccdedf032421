/* The C interface of libsdx: small and stable. Functions never throw and never abort on bad input.
 * Ownership: sdx_*_create/open/run return objects that the caller frees with the matching sdx_*_free (which accepts NULL).
 * Strings and arrays returned as const pointers belong to the object they came from and live as long as it does. Threads: any
 * number of threads may use one sdx_session at once; use every other object from one thread at a time. sdx_last_error() is
 * kept per thread. Shapes are int64_t extents, outermost first; data is dense, row-major, in the machine's byte order. 4- and
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

/* New values are added only at the end. */
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

/* Element types, numbered as in ONNX's TensorProto.DataType (1 float32, 2 uint8, 3 int8, 6 int32, 7 int64, 8 string, 9 bool,
 * 10 float16, 11 float64, 16 bfloat16, ...). */
typedef int32_t sdx_dtype;

typedef struct sdx_session sdx_session;
typedef struct sdx_tensor sdx_tensor;
typedef struct sdx_options sdx_options;
typedef struct sdx_cancel sdx_cancel;

SDX_C_API const char* sdx_version(void);
SDX_C_API const char* sdx_status_name(sdx_status status);
/* Message of the last failed call on this thread; "" if none failed. */
SDX_C_API const char* sdx_last_error(void);

/* Session options; every setter is optional. */
SDX_C_API sdx_options* sdx_options_create(void);
SDX_C_API void sdx_options_free(sdx_options* options);
/* Sets any option by its name (docs/options.md), from text: ("threads", "2"), ("memory_limit", "512MB"), ("provider_timeout",
 * "2s"), ("runtime", "native"). For lists and maps, each call adds one item: ("dimensions", "batch=4"). Returns
 * SDX_INVALID_ARGUMENT for a number out of range, and, with the closest match, for an unknown name or word. */
SDX_C_API sdx_status sdx_options_set(sdx_options* options, const char* name, const char* value);

/* Typed setters. They return SDX_INVALID_ARGUMENT for numbers out of range and unknown words. */
/* Appends a provider to the chain, by short or ONNX Runtime name. */
SDX_C_API sdx_status sdx_options_add_provider(sdx_options* options, const char* name);
SDX_C_API sdx_status sdx_options_set_strict(sdx_options* options, int strict);
SDX_C_API sdx_status sdx_options_set_optimize(sdx_options* options, int optimize);
SDX_C_API sdx_status sdx_options_set_threads(sdx_options* options, int threads);
/* Cores to pin worker threads to: "auto", or a list such as "0,2-3" whose first core is the caller's. */
SDX_C_API sdx_status sdx_options_set_thread_affinity(sdx_options* options, const char* cores);
SDX_C_API sdx_status sdx_options_set_memory_limit(sdx_options* options, size_t bytes);

/* Adds a shared library with custom operators (sdx/custom_op.h). It is loaded when a session is opened. */
SDX_C_API sdx_status sdx_options_add_custom_ops(sdx_options* options, const char* library);

/* "auto", "native" (our own engine only) or "ort" (the ONNX Runtime library). */
SDX_C_API sdx_status sdx_options_set_runtime(sdx_options* options, const char* runtime);
/* Sets an option of one provider, by the vendor's name: ("cuda", "device_id", "1"). */
SDX_C_API sdx_status sdx_options_set_provider_option(sdx_options* options, const char* provider, const char* key,
                                                     const char* value);
/* "order" (the first available provider) or "measured" (the fastest on the first run's inputs). */
SDX_C_API sdx_status sdx_options_set_select(sdx_options* options, const char* select);
/* Nonzero: measure the cpu provider's kernels for each node when the session is opened, and remember the fastest. */
SDX_C_API sdx_status sdx_options_set_tune(sdx_options* options, int tune);
/* A provider, for example "cpu", that serves runs while the providers before it in the chain compile. */
SDX_C_API sdx_status sdx_options_set_start_on(sdx_options* options, const char* provider);
/* Time limit of a run in milliseconds, after which the next provider answers; 0: no limit. */
SDX_C_API sdx_status sdx_options_set_provider_timeout(sdx_options* options, int64_t milliseconds);
/* Delay in milliseconds before a failed provider is retried; 0: never retry. */
SDX_C_API sdx_status sdx_options_set_provider_retry(sdx_options* options, int64_t milliseconds);
/* Nonzero: treat NaN that only a provider other than `cpu` produces as a failure of that provider. */
SDX_C_API sdx_status sdx_options_set_reject_nan(sdx_options* options, int reject);
/* Nonzero: write the model as compiled for `cpu` to the cache folder, for later starts. */
SDX_C_API sdx_status sdx_options_set_keep_compiled(sdx_options* options, int keep);
/* "stderr", or a file that receives one line of JSON per run. */
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
/* Element type; 0 for values that are not tensors. `rank` receives the rank, -1 if unknown; up to `capacity` extents are
 * written to `shape`, -1 for each that is not fixed. `rank` and `shape` may be NULL. */
SDX_C_API sdx_dtype sdx_session_input_type(const sdx_session* session, size_t index, int64_t* shape, size_t capacity,
                                           int64_t* rank);
SDX_C_API sdx_dtype sdx_session_output_type(const sdx_session* session, size_t index, int64_t* shape, size_t capacity,
                                            int64_t* rank);
/* A human-readable report of what ran where. */
SDX_C_API const char* sdx_session_report(sdx_session* session);

/* A tensor that owns a copy of the `bytes` bytes at `data`; with `data` NULL it is uninitialised. Not for strings. */
SDX_C_API sdx_status sdx_tensor_create(sdx_dtype dtype, const int64_t* shape, size_t rank, const void* data, size_t bytes,
                                       sdx_tensor** tensor);
/* A tensor that refers to the caller's memory, which must outlive it and every run that uses it. */
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
/* Safe to call from any thread. */
SDX_C_API void sdx_cancel_now(sdx_cancel* cancel);

/* Runs the model. `inputs[i]` is the value of the input `names[i]`. `output_names` may be NULL: then all outputs are returned
 * in order, and `output_count` must be their number. On success each outputs[i] is a new tensor that the caller frees; on
 * failure all are NULL. Outputs that are not tensors (sequences, maps) return SDX_NOT_IMPLEMENTED. timeout_ms 0: no deadline;
 * `cancel` may be NULL. */
SDX_C_API sdx_status sdx_session_run(const sdx_session* session, const char* const* names, const sdx_tensor* const* inputs,
                                     size_t input_count, const char* const* output_names, size_t output_count,
                                     sdx_tensor** outputs, int64_t timeout_ms, const sdx_cancel* cancel);

#ifdef __cplusplus
}
#endif

#endif
