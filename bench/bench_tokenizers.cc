// How fast a tokenizer loads and encodes: bench_tokenizers TOKENIZER ROUNDS TEXT... Prints JSON: milliseconds of processor time
// to load, and for each file the best round's megabytes per second and its number of tokens. Files are cut into documents of 10
// kB.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sdx/tokenizer.hpp>

namespace {

double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::vector<std::string> documents(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> out;
  for (std::size_t at = 0; at < all.size();) {
    std::size_t end = std::min(all.size(), at + 10000);
    while (end < all.size() && all[end] != '\n') ++end;
    out.push_back(all.substr(at, end - at));
    at = end;
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  double start = seconds();
  sdx::Tokenizer tokenizer = sdx::Tokenizer::load(argv[1]);
  std::printf("{\"load_ms\": %.1f", (seconds() - start) * 1e3);
  tokenizer = tokenizer.with_truncation(std::nullopt).with_padding(std::nullopt);
  for (int i = 3; i < argc; ++i) {
    std::size_t bytes = 0, tokens = 0;
    double best = 1e9;
    const auto texts = documents(argv[i]);
    for (const std::string& t : texts) bytes += t.size();
    for (int round = std::atoi(argv[2]); round > 0; --round) {
      start = seconds();
      tokens = 0;
      for (const std::string& t : texts) tokens += tokenizer.encode(t).size();
      best = std::min(best, seconds() - start);
    }
    std::printf(", \"%s\": [%.2f, %zu]", argv[i], static_cast<double>(bytes) / best * 1e-6, tokens);
  }
  std::puts("}");
}
