#pragma once
// Errors that tests expect, as text.

#include <gtest/gtest.h>

#include <sdx/error.hpp>
#include <string>
#include <vector>

namespace sdx::testing {

// Runs `call`, which must throw an Error with this code, and returns its text with all contexts.
template <class F>
std::string error_of(ErrorCode code, F&& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(name(e.code()), name(code)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// Returns the text, with all contexts, of the Error that `call` throws; "" without one.
template <class F>
std::string error_text(F&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

// Returns the message, without contexts, of the Error that `call` throws; "" without one.
template <class F>
std::string error_message(F&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.message();
  }
  return {};
}

inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

// Expects that `call` throws an Error whose text has all parts.
template <class F>
void expect_error(F&& call, const std::vector<std::string>& parts) {
  expect_parts(error_text(call), parts);
}

// Expects that `call` throws an Error with this code, and a text with all parts.
template <class F>
void expect_error(ErrorCode code, F&& call, const std::vector<std::string>& parts) {
  expect_parts(error_of(code, call), parts);
}

}  // namespace sdx::testing
