// TfIdfVectorizer: ai.onnx 9.

#include <algorithm>
#include <unordered_map>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/movement.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct TfIdfVectorizerAttrs {
  std::string_view mode;
  std::int64_t min_gram_length = 0;
  std::int64_t max_gram_length = 0;
  std::int64_t max_skip_count = 0;
  IntList ngram_counts;
  IntList ngram_indexes;
  IntList pool_int64s;
  StringList pool_strings;
  FloatList weights;

  void fields(auto& f) {
    f.required("mode", mode);
    f.required("min_gram_length", min_gram_length);
    f.required("max_gram_length", max_gram_length);
    f.required("max_skip_count", max_skip_count);
    f.required("ngram_counts", ngram_counts);
    f.required("ngram_indexes", ngram_indexes);
    f("pool_int64s", pool_int64s);
    f("pool_strings", pool_strings);
    f("weights", weights);
  }
};

struct HashInts {
  std::size_t operator()(const Ints& v) const noexcept {
    std::uint64_t h = 1469598103934665603U;  // FNV-1a over the numbers
    for (const std::int64_t x : v) h = (h ^ static_cast<std::uint64_t>(x)) * 1099511628211U;
    return static_cast<std::size_t>(h ^ (h >> 32));
  }
};

// The n-grams of the pool by content. Strings stand for themselves through numbers: those that the pool lacks are -1.
struct Vocabulary {
  std::unordered_map<std::string, std::int64_t> words;
  std::unordered_map<Ints, std::vector<std::size_t>, HashInts> grams;  // -> number of the n-gram in the pool
  Ints coordinates;
  std::vector<float> weights;
  std::int64_t width = 0;
};

std::int64_t output_width(IntList coordinates) {
  std::int64_t most = -1;
  for (const std::int64_t i : coordinates) {
    if (i < 0 || i > INT32_MAX) fail(ErrorCode::invalid_model, "'ngram_indexes' holds {}", i);
    most = std::max(most, i);
  }
  return most + 1;
}

Ints pool_tokens(const TfIdfVectorizerAttrs& attr, Vocabulary& v) {
  const StringList strings = attr.pool_strings;
  if (strings.empty() == attr.pool_int64s.empty()) {
    fail(ErrorCode::invalid_model, "exactly one of 'pool_strings' and 'pool_int64s' must be given");
  }
  if (strings.empty()) return to_vector(attr.pool_int64s);
  Ints tokens;
  for (const std::string& s : strings) {
    tokens.push_back(v.words.emplace(s, static_cast<std::int64_t>(v.words.size())).first->second);
  }
  return tokens;
}

Vocabulary vocabulary(const TfIdfVectorizerAttrs& attr) {
  Vocabulary v;
  const Ints pool = pool_tokens(attr, v);
  const IntList starts = attr.ngram_counts;
  v.coordinates = to_vector(attr.ngram_indexes);
  v.weights = to_vector(attr.weights);
  v.width = output_width(v.coordinates);
  std::size_t number = 0;
  const auto size = static_cast<std::int64_t>(pool.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t begin = starts[i];
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : size;
    const auto n = static_cast<std::int64_t>(i) + 1;
    if (begin < 0 || begin > end || end > size || (end - begin) % n != 0) {
      fail(ErrorCode::invalid_model, "'ngram_counts' {} does not divide a pool of {} into n-grams", to_string(starts), size);
    }
    for (std::int64_t at = begin; at < end; at += n) {
      v.grams[Ints(pool.begin() + at, pool.begin() + at + n)].push_back(number++);
    }
  }
  if (number != v.coordinates.size() || (!v.weights.empty() && v.weights.size() != number)) {
    fail(ErrorCode::invalid_model, "the pool holds {} n-grams; 'ngram_indexes' has {}, 'weights' {}", number,
         v.coordinates.size(), v.weights.size());
  }
  return v;
}

struct Scan {
  std::int64_t shortest, longest, skips;
};

Scan scan_of(const TfIdfVectorizerAttrs& attr) {
  const Scan s{attr.min_gram_length, attr.max_gram_length, attr.max_skip_count};
  if (s.shortest < 1 || s.longest < s.shortest || s.skips < 0) {
    fail(ErrorCode::invalid_model, "n-gram lengths {} to {} with {} skips make no sense", s.shortest, s.longest, s.skips);
  }
  return s;
}

void count_grams(const OpContext& c, const Vocabulary& v, const Scan& scan, const std::int64_t* tokens, std::int64_t n,
                 std::vector<std::int64_t>& counts) {
  Ints gram;
  for (std::int64_t length = scan.shortest; length <= std::min(scan.longest, n); ++length) {
    // Single tokens have no gaps, and gaps that leave the row find nothing more.
    const std::int64_t widest = length == 1 ? 0 : std::min(scan.skips, (n - 1) / (length - 1) - 1);
    for (std::int64_t skip = 0; skip <= widest; ++skip) {
      c.stop().check();
      const std::int64_t step = skip + 1;
      for (std::int64_t start = 0; start + (length - 1) * step < n; ++start) {
        gram.clear();
        for (std::int64_t k = 0; k < length; ++k) gram.push_back(tokens[start + k * step]);
        const auto found = v.grams.find(gram);
        if (found == v.grams.end()) continue;
        for (const std::size_t number : found->second) ++counts[number];
      }
    }
  }
}

void infer_tfidf(InferContext& c) {
  const std::int64_t width = output_width(parse<TfIdfVectorizerAttrs>(c).ngram_indexes);
  const SymShape* in = c.shape(0);
  if (in == nullptr) return c.output(0, DataType::float32);
  if (in->size() > 2) c.fail("the input must be of rank 0 to 2, received {}", to_string(*in));
  c.output(0, DataType::float32, in->size() < 2 ? SymShape{Dim(width)} : SymShape{(*in)[0], Dim(width)});
}

Ints input_tokens(const OpContext& c, const Vocabulary& v) {
  const Tensor& in = c.input(0);
  if ((in.dtype() == DataType::string) == v.words.empty()) {
    c.fail("the input {} does not fit the pool, which holds {}", in.type_string(), v.words.empty() ? "integers" : "strings");
  }
  if (v.words.empty()) return to_ints(in);
  Ints tokens;
  for (const std::string& s : in.values<std::string>()) {
    const auto found = v.words.find(s);
    tokens.push_back(found == v.words.end() ? -1 : found->second);
  }
  return tokens;
}

void run_tfidf(OpContext& c) {
  const auto attr = parse<TfIdfVectorizerAttrs>(c);
  const Tensor& in = c.input(0);
  if (in.rank() > 2) c.fail("the input must be of rank 0 to 2, received {}", in.type_string());
  const std::string_view mode = attr.mode;
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") c.fail("'mode' must be TF, IDF or TFIDF, received {}", mode);
  const auto kept = c.once<Vocabulary>([&] { return vocabulary(attr); });
  const Vocabulary& v = *kept;
  const Scan scan = scan_of(attr);
  const Ints tokens = input_tokens(c, v);
  const std::int64_t rows = in.rank() < 2 ? 1 : in.dim(0);
  const std::int64_t length = in.rank() == 0 ? 1 : in.shape().back();
  Tensor& out = c.output(0, DataType::float32, in.rank() < 2 ? Shape{v.width} : Shape{rows, v.width});
  fill_zero(out);
  auto* to = static_cast<float*>(out.mutable_data());
  std::vector<std::int64_t> counts(v.coordinates.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    std::fill(counts.begin(), counts.end(), std::int64_t{0});
    count_grams(c, v, scan, tokens.data() + r * length, length, counts);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      const float weight = mode == "TF" || v.weights.empty() ? 1.0F : v.weights[i];
      to[r * v.width + v.coordinates[i]] += weight * (mode == "IDF" ? 1.0F : static_cast<float>(counts[i]));
    }
  }
}

}  // namespace

void register_tfidf_vectorizer(OpTable& t) {
  t.add(OpDef("TfIdfVectorizer", 9)
            .in("X", "T", types::string | types::indices)
            .out("Y", "T1", bit(DataType::float32))
            .attrs<TfIdfVectorizerAttrs>()
            .infer_with(infer_tfidf)
            .run_with(run_tfidf));
}

}  // namespace sdx::ops
