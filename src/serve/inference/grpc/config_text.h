#pragma once
// config.pbtxt: protobuf's text format.

#include <string>
#include <string_view>
#include <vector>

namespace sdx::serve {

// See GrpcModule::read_config.
std::string read_config_text(std::string_view text, std::vector<std::string>& ignored);

}  // namespace sdx::serve
