#pragma once
// Tells whether two benchmarks are of the same model.

#include <filesystem>
#include <string>

namespace sdx::benchmark {

// 32 hexadecimal digits: of the model's file and of the external data that it names. Empty where they cannot be read as a
// model's.
std::string model_hash(const std::filesystem::path& model);

}  // namespace sdx::benchmark
