#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sdx::cli {

// The manual page sdx(1), made from the commands and options themselves.
std::string manual_page(const CLI::App& program);

}  // namespace sdx::cli
