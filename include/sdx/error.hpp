#pragma once
// The one exception type of the library.

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/export.hpp>

namespace sdx {

enum class ErrorCode : int {
  ok = 0,
  invalid_model = 1,         // the file or graph breaks a rule of the format or of an operator
  invalid_argument = 2,      // the caller passed an unusable argument
  not_implemented = 3,       // valid, but not supported by this build
  provider_unavailable = 4,  // a requested provider cannot be used here
  out_of_memory = 5,         // an allocation failed or a configured limit was exceeded
  io = 6,                    // reading or writing a file failed
  runtime_failure = 7,       // running the model failed (for example a data-dependent shape does not fit)
  cancelled = 8,             // the caller cancelled the run
  deadline_exceeded = 9,     // the run took longer than its deadline
  internal = 10,             // a bug in the library; please report it
};

SDX_API std::string_view name(ErrorCode code) noexcept;

// What went wrong, and where: each layer that an error passes through adds one line of context (model file, node, operator).
// what() is the message followed by the context, innermost first. Copyable; copying may allocate.
class SDX_API Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message);

  ErrorCode code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const std::vector<std::string>& context() const noexcept { return context_; }
  const char* what() const noexcept override { return text_.c_str(); }

  // Appends one line of context, for example "in node 'conv1' (Conv)". Returns *this.
  Error& add_context(std::string line);

 private:
  ErrorCode code_;
  std::string message_;
  std::vector<std::string> context_;
  std::string text_;
};

}  // namespace sdx
