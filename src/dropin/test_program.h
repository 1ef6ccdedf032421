#pragma once
// Shared by tests of the C interface: calls by place, statuses as text, objects that release themselves.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "dropin/call.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

inline const Caller& the_api() {
  static const Caller caller(api());
  return caller;
}

// "" for success, else "code: message". Releases the status.
inline std::string said(OrtStatus* status) {
  if (status == nullptr) return "";
  std::string text = std::to_string(status_code(status)) + ": " + status_message(status);
  release_status(status);
  return text;
}
template <class... Args>
std::string ask(Slot slot, Args... args) {
  return said(the_api().call(slot, args...));
}
#define EXPECT_OK(...) EXPECT_EQ(ask(__VA_ARGS__), "")

template <Slot slot>
struct Release {
  template <class T>
  void operator()(T* object) const {
    the_api().call<void>(slot, object);
  }
};
template <class T, Slot slot>
using Handle = std::unique_ptr<T, Release<slot>>;
using Value_ = Handle<OrtValue, Slot::ReleaseValue>;

inline Value_ floats(std::vector<float>& data, std::vector<std::int64_t> shape) {
  OrtValue* value = nullptr;
  EXPECT_OK(Slot::CreateTensorWithDataAsOrtValue, cpu_memory(), static_cast<void*>(data.data()), data.size() * 4,
            static_cast<const std::int64_t*>(shape.data()), shape.size(), ELEMENT_FLOAT, &value);
  return Value_(value);
}

// An environment with one session over a model in the text of tests/support/graph_text.h.
struct Opened {
  OrtEnv* env = nullptr;
  OrtSession* session = nullptr;
  std::string problem;

  explicit Opened(const std::string& bytes, const OrtSessionOptions* options = nullptr) {
    EXPECT_OK(Slot::CreateEnv, ORT_LOGGING_LEVEL_WARNING, "test", &env);
    problem = ask(Slot::CreateSessionFromArray, const_cast<const OrtEnv*>(env), static_cast<const void*>(bytes.data()),
                  bytes.size(), options, &session);
  }
  ~Opened() {
    the_api().call<void>(Slot::ReleaseSession, session);
    the_api().call<void>(Slot::ReleaseEnv, env);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  std::string run(const std::vector<const char*>& names, const std::vector<const OrtValue*>& values,
                  const std::vector<const char*>& outputs, std::vector<OrtValue*>& results,
                  const OrtRunOptions* options = nullptr) const {
    results.resize(outputs.size());
    return ask(Slot::Run, session, options, names.data(), values.data(), values.size(), outputs.data(), outputs.size(),
               results.data());
  }
};

}  // namespace sdx::dropin
