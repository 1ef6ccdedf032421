// com.microsoft BifurcationDetector 1: for decoding that first guesses that the text continues like the source.

#include <algorithm>

#include "ops/context.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct BifurcationDetectorAttrs {
  std::int64_t max_ngram_size = 3;
  std::int64_t min_ngram_size = 1;

  void fields(auto& f) {
    f("max_ngram_size", max_ngram_size);
    f("min_ngram_size", min_ngram_size);
  }
};

void infer_bifurcation(InferContext& c) {
  const SymShape* cur = c.shape(1);
  c.output(0, DataType::int64, {cur != nullptr && cur->size() == 1 && !c.has_input(3) ? (*cur)[0] : Dim()});
  c.output(1, DataType::int64, SymShape{});
}

std::vector<std::int64_t> tokens(OpContext& c, std::size_t i) {
  const Tensor& t = c.input(i);
  if (t.rank() != 1) c.fail("input {} must have 1 axis, received {}", i, t.type_string());
  const auto v = t.values<std::int64_t>();
  return {v.begin(), v.end()};
}

void run_bifurcation(OpContext& c) {
  const auto attr = parse<BifurcationDetectorAttrs>(c);
  const std::vector<std::int64_t> source = tokens(c, 0);
  std::vector<std::int64_t> text = tokens(c, 1);
  const std::int64_t start = single_int(c.input(2), "prev_suffix_match_idx");
  if (c.has_input(3)) {
    const std::vector<std::int64_t> predicted = tokens(c, 3);
    const auto left = static_cast<std::int64_t>(source.size()) - start;
    if (start < 0 || left < 0 || static_cast<std::int64_t>(predicted.size()) != left + 1) {
      c.fail("{} predicted tokens; from {} on the source has {}: one less is expected", predicted.size(), start, left);
    }
    const auto differs = std::mismatch(source.begin() + start, source.end(), predicted.begin()).second;
    text.insert(text.end(), predicted.begin(), differs + 1);
  }
  const std::int64_t least = attr.min_ngram_size, most = attr.max_ngram_size;
  if (least < 1 || most < least) c.fail("n-grams of {} to {} tokens are impossible", least, most);
  std::int64_t match = -1;
  for (std::int64_t n = least; n <= std::min<std::int64_t>(most, static_cast<std::int64_t>(text.size())); ++n) {
    const auto found = std::search(source.begin(), source.end(), text.end() - n, text.end());
    if (found == source.end()) break;
    match = found - source.begin() + n;
    if (match >= static_cast<std::int64_t>(source.size())) break;
    if (std::search(found + 1, source.end(), text.end() - n, text.end()) == source.end()) break;
    match = -1;
  }
  c.set_output(0, Tensor::of<std::int64_t>({static_cast<std::int64_t>(text.size())}, text));
  c.set_output(1, Tensor::of<std::int64_t>({}, {match}));
}

}  // namespace

void register_bifurcation_detector(OpTable& t) {
  t.add(OpDef("com.microsoft", "BifurcationDetector", 1)
            .in("src_tokens cur_tokens prev_suffix_match_idx", "T", types::int64)
            .in("pred_tokens", "T", types::int64, Arity::optional)
            .out("tokens suffix_match_idx", "T", types::int64)
            .attrs<BifurcationDetectorAttrs>()
            .infer_with(infer_bifurcation)
            .run_with(run_bifurcation));
}

}  // namespace sdx::ops
