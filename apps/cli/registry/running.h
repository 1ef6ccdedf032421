#pragma once
// `sdx models ps`.

#include <string>

namespace sdx::cli {

// What a running `sdx serve` at this address has loaded, as a table or as JSON.
int show_running(const std::string& address, bool json);

}  // namespace sdx::cli
