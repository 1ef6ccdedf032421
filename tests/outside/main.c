#include <sdx/mapped_files.h>
#include <sdx/sdx.h>
#include <stdio.h>
#include <string.h>

#include "model.h"

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      fprintf(stderr, "line %d: %s (last error: %s)\n", __LINE__, #condition, sdx_last_error()); \
      return 1;                                                                                  \
    }                                                                                            \
  } while (0)

static int errors(sdx_session* session, const sdx_tensor* x) {
  sdx_session* none = session;
  const char* wrong = "z";
  sdx_tensor* y = NULL;
  sdx_tensor* made = NULL;
  const int64_t shape[] = {2};
  const int64_t negative[] = {-2};
  CHECK(sdx_session_open("/nonexistent/model.onnx", NULL, &none) == SDX_IO && none == NULL);
  CHECK(strstr(sdx_last_error(), "model.onnx") != NULL);
  CHECK(sdx_session_from_bytes("rubbish", 7, NULL, &none) == SDX_INVALID_MODEL && none == NULL);
  CHECK(sdx_session_from_bytes(NULL, 7, NULL, &none) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_session_open(NULL, NULL, &none) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_session_open("x", NULL, NULL) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_session_run(session, &wrong, &x, 1, NULL, 1, &y, 0, NULL) == SDX_INVALID_ARGUMENT && y == NULL);
  CHECK(strstr(sdx_last_error(), "no input 'z'") != NULL);
  CHECK(sdx_session_run(session, NULL, NULL, 0, NULL, 1, &y, 0, NULL) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_session_run(session, NULL, NULL, 0, NULL, 2, NULL, 0, NULL) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_session_run(NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NULL) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_tensor_create(99, shape, 1, NULL, 0, &made) == SDX_INVALID_ARGUMENT && made == NULL);
  CHECK(sdx_tensor_create(1, negative, 1, NULL, 0, &made) == SDX_INVALID_ARGUMENT && made == NULL);
  CHECK(sdx_tensor_wrap(1, shape, 1, shape, 4, &made) == SDX_INVALID_ARGUMENT && made == NULL);
  CHECK(sdx_session_input_name(session, 1) == NULL && sdx_session_output_name(NULL, 0) == NULL);
  return 0;
}

/* Every setter of selection and fallback takes what it documents and refuses the rest. */
static int choosing(const sdx_tensor* x) {
  sdx_options* options = sdx_options_create();
  sdx_session* session = NULL;
  sdx_tensor* y = NULL;
  CHECK(sdx_options_set_runtime(options, "nativ") == SDX_INVALID_ARGUMENT);
  CHECK(strstr(sdx_last_error(), "runtime: ") != NULL && strstr(sdx_last_error(), "did you mean 'native'?") != NULL);
  CHECK(sdx_options_set_runtime(options, "native") == SDX_OK);
  CHECK(sdx_options_set_select(options, "best") == SDX_INVALID_ARGUMENT);
  CHECK(sdx_options_set_threads(options, -1) == SDX_INVALID_ARGUMENT);
  CHECK(strstr(sdx_last_error(), "threads: expected an integer from 0 to 4096, found -1") != NULL);
  CHECK(sdx_options_set_select(options, "order") == SDX_OK);
  CHECK(sdx_options_set_tune(options, 1) == SDX_OK && sdx_options_set_tune(options, 0) == SDX_OK);
  CHECK(sdx_options_set_provider_timeout(options, 5000) == SDX_OK);
  CHECK(sdx_options_set_provider_timeout(options, -1) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_options_set_provider_retry(options, 100) == SDX_OK);
  CHECK(sdx_options_set_provider_retry(options, -1) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_options_set_reject_nan(options, 1) == SDX_OK);
  CHECK(sdx_options_set_telemetry(options, "stderr") == SDX_OK);
  CHECK(sdx_options_set_telemetry(options, NULL) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_options_set_start_on(options, "cup") == SDX_INVALID_ARGUMENT);
  CHECK(sdx_options_set_start_on(options, "cpu") == SDX_OK);
  CHECK(sdx_options_set(options, "plan_cache_size", "2") == SDX_OK && sdx_options_set(options, "memory_limit", "512MB") == SDX_OK);
  CHECK(sdx_options_set(options, "provider_timeout", "2s") == SDX_OK && sdx_options_set(options, "strict", "warn") == SDX_OK);
  CHECK(sdx_options_set(options, "dimensions", "n=2") == SDX_OK);
  CHECK(sdx_options_set(options, "treads", "2") == SDX_INVALID_ARGUMENT);
  CHECK(strstr(sdx_last_error(), "did you mean 'threads'?") != NULL);
  CHECK(sdx_options_set(options, "threads", NULL) == SDX_INVALID_ARGUMENT && sdx_options_set(NULL, "threads", "1") == SDX_INVALID_ARGUMENT);
  CHECK(sdx_options_set_provider_option(options, "cuda", "device_id", "0") == SDX_OK);
  CHECK(sdx_options_set_provider_option(options, "cuda", NULL, "0") == SDX_INVALID_ARGUMENT);
  CHECK(sdx_options_add_provider(options, "cpu") == SDX_OK);
  CHECK(sdx_session_from_bytes(kModel, sizeof kModel, options, &session) == SDX_OK);
  const char* input = sdx_session_input_name(session, 0);
  CHECK(sdx_session_run(session, &input, &x, 1, NULL, 1, &y, 0, NULL) == SDX_OK);
  CHECK(strstr(sdx_session_report(session), "native") != NULL);
  sdx_tensor_free(y);
  sdx_session_free(session);
  sdx_options_free(options);
  return 0;
}

int main(void) {
  sdx_options* options = sdx_options_create();
  CHECK(options != NULL);
  CHECK(sdx_options_add_provider(options, "CPUExecutionProvider") == SDX_OK);
  CHECK(sdx_options_set_threads(options, 2) == SDX_OK);
  CHECK(sdx_options_set_threads(options, -1) == SDX_INVALID_ARGUMENT);
  CHECK(sdx_options_set_memory_limit(options, (size_t)1 << 30) == SDX_OK);
  sdx_session* session = NULL;
  CHECK(sdx_session_from_bytes(kModel, sizeof kModel, options, &session) == SDX_OK);
  CHECK(sdx_session_input_count(session) == 1 && sdx_session_output_count(session) == 1);
  int64_t extents[4] = {0};
  int64_t rank = 0;
  CHECK(sdx_session_input_type(session, 0, extents, 4, &rank) == 1 && rank == 1 && extents[0] == -1);

  const float data[] = {1, -2};
  const int64_t shape[] = {2};
  sdx_tensor* x = NULL;
  CHECK(sdx_tensor_wrap(1, shape, 1, data, sizeof data, &x) == SDX_OK);
  const char* input = sdx_session_input_name(session, 0);
  const char* output = sdx_session_output_name(session, 0);
  sdx_cancel* cancel = sdx_cancel_create();
  sdx_tensor* y = NULL;
  const sdx_tensor* inputs[] = {x};
  CHECK(sdx_session_run(session, &input, inputs, 1, &output, 1, &y, 10000, cancel) == SDX_OK);
  CHECK(sdx_tensor_dtype(y) == 1 && sdx_tensor_rank(y) == 1 && sdx_tensor_shape(y)[0] == 2 && sdx_tensor_bytes(y) == 8);
  const float* values = sdx_tensor_data(y);
  CHECK(values[0] == -1 && values[1] == 2);
  sdx_tensor_free(y);
  sdx_cancel_now(cancel);
  CHECK(sdx_session_run(session, &input, inputs, 1, NULL, 1, &y, 0, cancel) == SDX_CANCELLED && y == NULL);
  sdx_survive_mapped_faults();
  CHECK(sdx_check_mapped_files() == SDX_OK);
  const char* words[] = {"a", "b"};
  sdx_tensor* strings = NULL;
  CHECK(sdx_tensor_create_strings(words, shape, 1, &strings) == SDX_OK);
  CHECK(strcmp(sdx_tensor_string(strings, 1), "b") == 0 && sdx_tensor_string(strings, 2) == NULL);
  CHECK(strstr(sdx_session_report(session), "cpu") != NULL);
  if (errors(session, x) != 0 || choosing(x) != 0) return 1;
  sdx_tensor_free(strings);
  sdx_tensor_free(x);
  sdx_cancel_free(cancel);
  sdx_session_free(session);
  sdx_options_free(options);
  printf("%s: %s\n", sdx_version(), sdx_status_name(SDX_CANCELLED));
  return 0;
}
