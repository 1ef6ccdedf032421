#include <sdx/mapped_files.h>
#include <sdx/sdx.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <sdx/mapped_files.hpp>
#include <sdx/sdx.hpp>

#include "base/error.h"
#include "session/c/c_interface.h"
#include "session/options/option_table.h"

struct sdx_session {
  sdx::Session session;
  std::string report;
};
struct sdx_cancel {
  sdx::CancelToken token;
};

namespace {

thread_local std::string t_error;  // sdx_last_error() is of the last failed call on its thread

using sdx::session::guarded;
using sdx::session::require;

sdx::Shape shape_of(const int64_t* shape, size_t rank) {
  if (rank != 0) require(shape, "shape");
  return rank == 0 ? sdx::Shape{} : sdx::Shape(shape, shape + rank);
}

sdx::DataType dtype_of(sdx_dtype dtype) {
  if (dtype <= 0 || dtype >= sdx::kDataTypeCount) sdx::fail(sdx::ErrorCode::invalid_argument, "{} is not an element type", dtype);
  return static_cast<sdx::DataType>(dtype);
}

void check_bytes(const sdx::Tensor& t, size_t bytes) {
  if (t.bytes() != bytes) {
    sdx::fail(sdx::ErrorCode::invalid_argument, "{} takes {} bytes, received {}", t.type_string(), t.bytes(), bytes);
  }
}

// `set` is one of the table's functions; its errors say the option's name.
template <class Value, class Set>
void set_option(sdx_options* options, std::string_view name, const Value& value, Set&& set) {
  sdx::SessionOptions& o = require(options, "options").options;
  const sdx::session::SessionOption& option = sdx::session::session_option(name);
  try {
    set(option, o, value);
  } catch (const sdx::Error& e) {
    sdx::fail(e.code(), "{}: {}", name, e.message());
  }
}

sdx_status set_number(sdx_options* options, std::string_view name, int64_t value) noexcept {
  return guarded([&] { set_option(options, name, value, sdx::session::set_from_number); });
}

const char* name_at(const std::vector<sdx::ValueSpec>& specs, size_t index) {
  return index < specs.size() ? specs[index].name.c_str() : nullptr;
}

sdx_dtype type_at(const std::vector<sdx::ValueSpec>& specs, size_t index, int64_t* shape, size_t capacity, int64_t* rank) {
  if (index >= specs.size()) return 0;
  const sdx::ValueSpec& s = specs[index];
  if (rank != nullptr) *rank = s.has_shape ? static_cast<int64_t>(s.shape.size()) : -1;
  for (size_t i = 0; shape != nullptr && i < s.shape.size() && i < capacity; ++i) shape[i] = s.shape[i];
  return static_cast<sdx_dtype>(s.dtype);
}

}  // namespace

void sdx::session::set_last_error(const char* message) noexcept {
  try {
    t_error = message;
  } catch (...) {
    t_error.clear();
  }
}

extern "C" {

const char* sdx_version(void) { return SDX_VERSION; }

const char* sdx_status_name(sdx_status status) { return sdx::name(static_cast<sdx::ErrorCode>(status)).data(); }

const char* sdx_last_error(void) { return t_error.c_str(); }

void sdx_survive_mapped_faults(void) { sdx::survive_mapped_faults(); }

sdx_status sdx_check_mapped_files(void) {
  return guarded([] { sdx::check_mapped_files(); });
}

sdx_options* sdx_options_create(void) { return new (std::nothrow) sdx_options; }
void sdx_options_free(sdx_options* options) { delete options; }

sdx_status sdx_options_set(sdx_options* options, const char* name, const char* value) {
  return guarded(
      [&] { set_option(options, &require(name, "name"), std::string_view(&require(value, name)), sdx::session::set_from_text); });
}

sdx_status sdx_options_add_provider(sdx_options* options, const char* name) {
  return guarded([&] { require(options, "options").options.providers.emplace_back(&require(name, "name")); });
}
sdx_status sdx_options_set_strict(sdx_options* options, int strict) { return set_number(options, "strict", strict); }
sdx_status sdx_options_set_optimize(sdx_options* options, int optimize) { return set_number(options, "optimize", optimize); }
sdx_status sdx_options_set_threads(sdx_options* options, int threads) { return set_number(options, "threads", threads); }
sdx_status sdx_options_set_thread_affinity(sdx_options* options, const char* cores) {
  return sdx_options_set(options, "thread_affinity", cores);
}
sdx_status sdx_options_set_memory_limit(sdx_options* options, size_t bytes) {
  return set_number(options, "memory_limit", static_cast<int64_t>(std::min(bytes, size_t{INT64_MAX})));
}
sdx_status sdx_options_add_custom_ops(sdx_options* options, const char* library) {
  return sdx_options_set(options, "custom_ops", library);
}

sdx_status sdx_options_set_runtime(sdx_options* options, const char* runtime) {
  return sdx_options_set(options, "runtime", runtime);
}
sdx_status sdx_options_set_provider_option(sdx_options* options, const char* provider, const char* key, const char* value) {
  return guarded([&] {
    const std::string name = &require(provider, "provider");
    require(options, "options").options.provider_options.push_back({name, {{&require(key, "key"), &require(value, "value")}}});
  });
}
sdx_status sdx_options_set_select(sdx_options* options, const char* select) { return sdx_options_set(options, "select", select); }
sdx_status sdx_options_set_tune(sdx_options* options, int tune) { return set_number(options, "tune", tune); }
sdx_status sdx_options_set_start_on(sdx_options* options, const char* provider) {
  return sdx_options_set(options, "start_on", provider);
}
sdx_status sdx_options_set_provider_timeout(sdx_options* options, int64_t milliseconds) {
  return set_number(options, "provider_timeout", milliseconds);
}
sdx_status sdx_options_set_provider_retry(sdx_options* options, int64_t milliseconds) {
  return set_number(options, "provider_retry", milliseconds);
}
sdx_status sdx_options_set_reject_nan(sdx_options* options, int reject) { return set_number(options, "reject_nan", reject); }
sdx_status sdx_options_set_keep_compiled(sdx_options* options, int keep) { return set_number(options, "keep_compiled", keep); }
sdx_status sdx_options_set_telemetry(sdx_options* options, const char* where) {
  return sdx_options_set(options, "telemetry", where);
}

sdx_status sdx_session_open(const char* path, const sdx_options* options, sdx_session** session) {
  return guarded([&] {
    require(session, "session") = nullptr;
    const sdx::SessionOptions o = options != nullptr ? options->options : sdx::SessionOptions{};
    *session = new sdx_session{sdx::Session::open(&require(path, "path"), o), {}};
  });
}

sdx_status sdx_session_from_bytes(const void* bytes, size_t size, const sdx_options* options, sdx_session** session) {
  return guarded([&] {
    require(session, "session") = nullptr;
    const sdx::SessionOptions o = options != nullptr ? options->options : sdx::SessionOptions{};
    if (size != 0) require(static_cast<const char*>(bytes), "bytes");
    *session = new sdx_session{sdx::Session::from_bytes({static_cast<const std::byte*>(bytes), size}, o), {}};
  });
}

void sdx_session_free(sdx_session* session) { delete session; }

size_t sdx_session_input_count(const sdx_session* session) { return session != nullptr ? session->session.inputs().size() : 0; }
size_t sdx_session_output_count(const sdx_session* session) { return session != nullptr ? session->session.outputs().size() : 0; }
const char* sdx_session_input_name(const sdx_session* session, size_t index) {
  return session != nullptr ? name_at(session->session.inputs(), index) : nullptr;
}
const char* sdx_session_output_name(const sdx_session* session, size_t index) {
  return session != nullptr ? name_at(session->session.outputs(), index) : nullptr;
}
sdx_dtype sdx_session_input_type(const sdx_session* session, size_t index, int64_t* shape, size_t capacity, int64_t* rank) {
  return session != nullptr ? type_at(session->session.inputs(), index, shape, capacity, rank) : 0;
}
sdx_dtype sdx_session_output_type(const sdx_session* session, size_t index, int64_t* shape, size_t capacity, int64_t* rank) {
  return session != nullptr ? type_at(session->session.outputs(), index, shape, capacity, rank) : 0;
}

const char* sdx_session_report(sdx_session* session) {
  if (session == nullptr) return "";
  guarded([&] { session->report = session->session.report().text(); });
  return session->report.c_str();
}

sdx_status sdx_tensor_create(sdx_dtype dtype, const int64_t* shape, size_t rank, const void* data, size_t bytes,
                             sdx_tensor** tensor) {
  return guarded([&] {
    require(tensor, "tensor") = nullptr;
    if (dtype_of(dtype) == sdx::DataType::string) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "use sdx_tensor_create_strings for strings");
    }
    sdx::Tensor t(dtype_of(dtype), shape_of(shape, rank));
    if (data != nullptr) {
      check_bytes(t, bytes);
      std::memcpy(t.mutable_data(), data, bytes);
    }
    *tensor = new sdx_tensor{std::move(t)};
  });
}

sdx_status sdx_tensor_wrap(sdx_dtype dtype, const int64_t* shape, size_t rank, const void* data, size_t bytes,
                           sdx_tensor** tensor) {
  return guarded([&] {
    require(tensor, "tensor") = nullptr;
    if (dtype_of(dtype) == sdx::DataType::string) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "strings cannot be wrapped; use sdx_tensor_create_strings");
    }
    sdx::Tensor t = sdx::Tensor::view(data, dtype_of(dtype), shape_of(shape, rank));
    check_bytes(t, bytes);
    if (bytes != 0) require(static_cast<const char*>(data), "data");
    *tensor = new sdx_tensor{std::move(t)};
  });
}

sdx_status sdx_tensor_create_strings(const char* const* values, const int64_t* shape, size_t rank, sdx_tensor** tensor) {
  return guarded([&] {
    require(tensor, "tensor") = nullptr;
    sdx::Tensor t(sdx::DataType::string, shape_of(shape, rank));
    auto strings = t.mutable_values<std::string>();
    for (size_t i = 0; i < strings.size(); ++i) strings[i] = &require(require(values + i, "values"), "a string");
    *tensor = new sdx_tensor{std::move(t)};
  });
}

void sdx_tensor_free(sdx_tensor* tensor) { delete tensor; }
sdx_dtype sdx_tensor_dtype(const sdx_tensor* t) { return t != nullptr ? static_cast<sdx_dtype>(t->tensor.dtype()) : 0; }
size_t sdx_tensor_rank(const sdx_tensor* t) { return t != nullptr ? t->tensor.rank() : 0; }
const int64_t* sdx_tensor_shape(const sdx_tensor* t) { return t != nullptr ? t->tensor.shape().data() : nullptr; }
size_t sdx_tensor_count(const sdx_tensor* t) { return t != nullptr ? static_cast<size_t>(t->tensor.size()) : 0; }
size_t sdx_tensor_bytes(const sdx_tensor* t) { return t != nullptr ? t->tensor.bytes() : 0; }
const void* sdx_tensor_data(const sdx_tensor* t) { return t != nullptr ? t->tensor.data() : nullptr; }
const char* sdx_tensor_string(const sdx_tensor* t, size_t index) {
  if (t == nullptr || t->tensor.dtype() != sdx::DataType::string || index >= static_cast<size_t>(t->tensor.size()))
    return nullptr;
  return t->tensor.values<std::string>()[index].c_str();
}

sdx_cancel* sdx_cancel_create(void) {
  sdx_cancel* made = nullptr;
  guarded([&] { made = new sdx_cancel; });
  return made;
}
void sdx_cancel_free(sdx_cancel* cancel) { delete cancel; }
void sdx_cancel_now(sdx_cancel* cancel) {
  if (cancel != nullptr) cancel->token.cancel();
}

sdx_status sdx_session_run(const sdx_session* session, const char* const* names, const sdx_tensor* const* inputs,
                           size_t input_count, const char* const* output_names, size_t output_count, sdx_tensor** outputs,
                           int64_t timeout_ms, const sdx_cancel* cancel) {
  for (size_t i = 0; outputs != nullptr && i < output_count; ++i) outputs[i] = nullptr;
  std::vector<std::unique_ptr<sdx_tensor>> made;
  const sdx_status status = guarded([&] {
    const sdx::Session& s = require(session, "session").session;
    sdx::NamedValues values;
    for (size_t i = 0; i < input_count; ++i) {
      values.add(&require(require(names + i, "names"), "an input name"),
                 require(require(inputs + i, "inputs"), "an input").tensor);
    }
    sdx::RunOptions options;
    if (timeout_ms > 0) options.timeout = std::chrono::milliseconds(timeout_ms);
    if (cancel != nullptr) options.cancel = cancel->token;
    for (size_t i = 0; output_names != nullptr && i < output_count; ++i) {
      options.outputs.emplace_back(&require(output_names[i], "an output name"));
    }
    if (output_names == nullptr && output_count != s.outputs().size()) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "the model has {} outputs, but the caller provided room for {}",
                s.outputs().size(), output_count);
    }
    if (output_count != 0) require(outputs, "outputs");
    for (const sdx::NamedValue& v : s.run(values, options)) {
      if (!v.value.is_tensor()) {
        sdx::fail(sdx::ErrorCode::not_implemented, "output '{}' is {}; the C interface returns tensors only", v.name,
                  v.value.type_string());
      }
      made.push_back(std::make_unique<sdx_tensor>(sdx_tensor{v.value.tensor()}));
    }
  });
  if (status != SDX_OK) return status;
  for (size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
  return SDX_OK;
}

}  // extern "C"
