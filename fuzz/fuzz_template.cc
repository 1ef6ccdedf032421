// Chat templates out of random bytes: parsed and rendered with small limits. Errors are fine, everything else is not.

#include <cstddef>
#include <cstdint>
#include <sdx/chat_template.hpp>
#include <sdx/error.hpp>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const sdx::ChatInput input{
      .messages =
          R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "żółw 🙂"}, {"role": "assistant", "content": null, "n": 1.5}])",
      .tools =
          R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}])",
      .add_generation_prompt = true,
      .now = "2026-01-02",
      .variables = R"({"bos_token": "<s>", "l": [3, 1, 2], "d": {"b": 1, "a": [2]}, "s": "Hello, World", "n": 5, "f": 2.5})"};
  try {
    const sdx::ChatTemplate chat(std::string_view(reinterpret_cast<const char*>(data), size));
    chat.render(input, {.steps = 200'000, .output = 1 << 20, .memory = std::size_t{16} << 20});
  } catch (const sdx::Error&) {
  }
  return 0;
}
