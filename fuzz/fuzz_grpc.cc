// What comes over gRPC, and config.pbtxt: the first byte chooses. Messages that are read must make requests whose tensors are
// whole, and answers that are read again as the same.

#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sdx/error.hpp>
#include <string>

#include "config_text.h"
#include "messages.h"
#include "serve/models/datatypes.h"
#include "serve/models/settings.h"

namespace {

using namespace sdx;
using namespace sdx::serve;

void check_request(std::string_view bytes) {
  inference::ModelInferRequest message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const InferRequest request = request_of(message);
  InferResult result;
  result.model = std::make_shared<LoadedModel>();
  for (const NamedValue& item : request.inputs) {
    const Tensor& t = item.value.tensor();
    std::string same;
    append_bytes(same, t);
    if (same.size() != bytes_of(t)) std::abort();
    result.outputs.push_back({{item.name, true}, t});
  }
  inference::ModelInferResponse response;
  fill_response(response, message.id(), result);
  inference::ModelInferResponse again;
  if (!again.ParseFromString(response.SerializeAsString()) || again.raw_output_contents_size() != message.inputs_size())
    std::abort();
}

void check_config(std::string_view text) {
  std::vector<std::string> ignored;
  static_cast<void>(settings_of_json(read_config_text(text, ignored), ignored));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    data[0] % 2 == 0 ? check_request(rest) : check_config(rest);
  } catch (const Error&) {  // requests and configurations may be refused
  }
  return 0;
}
