// Bodies of the Open Inference Protocol: JSON and the binary tensors behind it, configurations of models. The first byte says
// where the JSON ends.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sdx/error.hpp>
#include <string>

#include "serve/inference/infer_json.h"
#include "serve/inference/json_numbers.h"
#include "serve/models/datatypes.h"
#include "serve/models/settings.h"

namespace {

using namespace sdx;
using namespace sdx::serve;

// What was read is written, and read again as the same.
void check_round_trip(const InferRequest& request) {
  for (const NamedValue& item : request.inputs) {
    const Tensor& t = item.value.tensor();
    std::string bytes;
    append_bytes(bytes, t);
    if (bytes.size() != bytes_of(t)) std::abort();
    const Tensor again = tensor_of_bytes(bytes, t.dtype(), t.shape(), nullptr, "x");
    std::string second;
    append_bytes(second, again);
    if (bytes != second) std::abort();
    std::string text;
    try {
      append_values(text, t, "x");
    } catch (const Error&) {  // strings that are no UTF-8
      continue;
    }
    const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
    if (!parsed.is_array() || parsed.size() != static_cast<std::size_t>(t.size())) std::abort();
    if (t.dtype() == DataType::float16 || t.dtype() == DataType::bfloat16 || text.find("null") != std::string::npos) continue;
    const Tensor read = read_values(text, t.dtype(), t.shape(), "x");
    std::string third;
    append_bytes(third, read);
    if (bytes != third) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = data[0] == 0 ? body.size() : body.find_last_of('}') + 1;
  try {
    check_round_trip(parse_infer_request(body, data[0] == 255 ? data[0] : end, nullptr));
  } catch (const Error&) {  // requests may be refused
  }
  try {
    std::vector<std::string> ignored;
    static_cast<void>(settings_of_json(body, ignored));
  } catch (const Error&) {
  }
  return 0;
}
