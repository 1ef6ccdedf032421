#pragma once
// Failures inside the module, which become an Outcome at its border.

#include <stdexcept>
#include <string>

#include "kernels/vulkan/functions.h"
#include "kernels/vulkan/table.h"

namespace sdx::vulkan {

class Failure : public std::runtime_error {
 public:
  Failure(Outcome outcome, const std::string& message) : std::runtime_error(message), outcome_(outcome) {}
  Outcome outcome() const { return outcome_; }

 private:
  Outcome outcome_;
};

// "VK_ERROR_DEVICE_LOST"
std::string name_of(VkResult result);

// Throws a Failure for a negative result. `what` is said as "cannot {what}".
void check(VkResult result, const char* what);

}  // namespace sdx::vulkan
