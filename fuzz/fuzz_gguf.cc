// Any bytes, read as a GGUF file: header, metadata through every getter, every tensor's values. Only sdx::Error may come out, and
// nothing may be `internal`.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "tensor/gguf/gguf_model.h"
#include "text/model/network/decoder_config.h"

namespace {

template <class Call>
void attempt(Call&& call) {
  try {
    call();
  } catch (const sdx::Error& e) {
    if (e.code() != sdx::ErrorCode::internal) return;
    std::fprintf(stderr, "BROKEN: %s\n", e.what());
    std::abort();
  }
}

void exercise(const sdx::GgufModel& model) {
  const sdx::GgufFile& file = model.metadata();
  for (const sdx::GgufValue& v : file.values()) {
    attempt([&] { file.text(v.key); });
    attempt([&] { file.whole(v.key); });
    attempt([&] { file.number(v.key); });
    attempt([&] { file.truth(v.key); });
    attempt([&] { file.texts(v.key); });
    attempt([&] { file.numbers(v.key); });
    attempt([&] { file.bytes(v.key); });
  }
  attempt([&] { sdx::text::read_decoder_config(model); });
  for (const sdx::StoredTensor& t : model.tensors()) {
    const sdx::GgmlFormat* format = sdx::find_ggml(t.type);
    if (format == nullptr || t.data.empty()) continue;
    std::vector<float> values(static_cast<std::size_t>(format->block));
    for (std::int64_t b = 0; b < t.elements() / format->block; ++b) {
      sdx::ggml_dequantize(*format, t.data.data() + b * format->bytes, 1, values.data());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attempt([&] { exercise(*sdx::GgufModel::read(std::as_bytes(std::span(data, size)), nullptr, "fuzzed")); });
  return 0;
}
