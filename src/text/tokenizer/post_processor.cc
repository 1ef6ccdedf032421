#include "text/tokenizer/post_processor.h"

#include <algorithm>

#include "base/error.h"
#include "text/tokenizer/encoding.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

using Step = PostProcessorStep;

// Without the spaces that byte-level tokens begin and end with.
void trim_offsets(Encoding& e, bool add_prefix_space) {
  const auto is_space = [](char32_t c) { return c == 0x120 || is_white_space(c); };  // U+0120 is how byte level writes a space
  for (std::size_t i = 0; i < e.size(); ++i) {
    const std::string& token = e.tokens[i];
    std::uint32_t leading = 0, trailing = 0;
    bool only = true;
    for (std::size_t at = 0; at < token.size();) {
      const bool space = is_space(next_char(token, at));
      only = only && space;
      if (only) ++leading;
      trailing = space ? trailing + 1 : 0;
    }
    TextRange& o = e.offsets[i];
    if (leading > 0) {
      const bool first = i == 0 || o.begin == 0;
      if (!(first && add_prefix_space && leading == 1)) o.begin = std::min(o.begin + leading, o.end);
    }
    if (trailing > 0 && o.end >= trailing) o.end = std::max(o.end - trailing, o.begin);
  }
}

void trim_offsets(const Step& step, std::vector<Encoding>& parts) {
  if (!step.trim_offsets) return;
  for (Encoding& e : parts) {
    trim_offsets(e, step.add_prefix_space);
    for (Encoding& part : e.overflowing) trim_offsets(part, step.add_prefix_space);
  }
}

void set_types(Encoding& e, std::uint32_t type) { std::fill(e.type_ids.begin(), e.type_ids.end(), type); }

// The text between two special tokens; of these the first may be missing.
void enclose(Encoding& e, std::size_t sequence, const Step::Special* before, const Step::Special& after, std::uint32_t type) {
  std::vector<Encoding> parts = std::move(e.overflowing);
  e.overflowing.clear();
  Encoding to;
  if (before != nullptr) add_special(to, before->id, before->token, type);
  std::fill(e.special_tokens_mask.begin(), e.special_tokens_mask.end(), 0);
  std::fill(e.attention_mask.begin(), e.attention_mask.end(), 1);
  const auto begin = static_cast<std::uint32_t>(to.size()), end = static_cast<std::uint32_t>(begin + e.size());
  merge_into(to, std::move(e));
  add_special(to, after.id, after.token, type);
  to.sequence_ranges[0].reset();
  to.sequence_ranges[1].reset();
  to.sequence_ranges[sequence] = TextRange{begin, end};
  for (Encoding& part : parts) enclose(part, sequence, before, after, type);
  to.overflowing = std::move(parts);
  e = std::move(to);
}

std::vector<Encoding> bert(const Step& step, std::vector<Encoding> parts) {
  enclose(parts[0], 0, &step.cls, step.sep, 0);
  if (parts.size() > 1) enclose(parts[1], 1, nullptr, step.sep, 1);
  return parts;
}

std::vector<Encoding> roberta(const Step& step, std::vector<Encoding> parts, bool add_special_tokens) {
  trim_offsets(step, parts);
  for (Encoding& e : parts) set_types(e, 0);
  if (!add_special_tokens) return parts;
  for (Encoding& e : parts) {
    for (Encoding& part : e.overflowing) set_types(part, 0);
  }
  enclose(parts[0], 0, &step.cls, step.sep, 0);
  if (parts.size() > 1) enclose(parts[1], 1, &step.sep, step.sep, 0);
  return parts;
}

std::vector<Encoding> templated(const Step& step, std::vector<Encoding> parts, bool add_special_tokens) {
  const std::vector<Step::Piece>& pieces = parts.size() > 1 ? step.pair : step.single;
  const auto uses = [&](int sequence, std::size_t from) {
    return std::any_of(pieces.begin() + static_cast<std::ptrdiff_t>(from), pieces.end(),
                       [&](const Step::Piece& p) { return p.sequence == sequence; });
  };
  std::vector<Encoding> out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Step::Piece& piece = pieces[i];
    if (piece.sequence < 0) {
      if (!add_special_tokens) continue;
      Encoding& e = out.emplace_back();
      for (const Step::Special& s : piece.specials) add_special(e, s.id, s.token, piece.type_id);
      continue;
    }
    if (static_cast<std::size_t>(piece.sequence) >= parts.size()) {
      fail(ErrorCode::invalid_argument, "the tokenizer's template for one text needs a second one");
    }
    Encoding& e = parts[static_cast<std::size_t>(piece.sequence)];
    set_types(e, piece.type_id);
    set_sequence(e, static_cast<std::size_t>(piece.sequence));
    if (uses(piece.sequence, i + 1)) {
      out.push_back(e);
    } else {
      out.push_back(std::move(e));
    }
  }
  return out;
}

std::vector<Encoding> apply(const Step& step, std::vector<Encoding> parts, bool add_special_tokens) {
  switch (step.kind) {
    case Step::Kind::bert: return add_special_tokens ? bert(step, std::move(parts)) : parts;
    case Step::Kind::roberta: return roberta(step, std::move(parts), add_special_tokens);
    case Step::Kind::byte_level:
      trim_offsets(step, parts);
      for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 2); ++i) set_sequence(parts[i], i);
      return parts;
    case Step::Kind::templated: return templated(step, std::move(parts), add_special_tokens);
  }
  return parts;
}

}  // namespace

std::size_t PostProcessorStep::added(bool is_pair) const {
  switch (kind) {
    case Kind::bert: return is_pair ? 3 : 2;
    case Kind::roberta: return is_pair ? 4 : 2;
    case Kind::byte_level: return 0;
    case Kind::templated: break;
  }
  std::size_t count = 0;
  for (const Piece& p : is_pair ? pair : single) count += p.specials.size();
  return count;
}

std::size_t added_tokens(const std::vector<Step>& steps, bool is_pair) {
  std::size_t count = 0;
  for (const Step& s : steps) count += s.added(is_pair);
  return count;
}

Encoding post_process(const std::vector<Step>& steps, bool present, std::vector<Encoding> parts, bool add_special_tokens) {
  if (!present) {
    if (parts.size() == 1) return std::move(parts[0]);
    for (std::size_t i = 0; i < parts.size(); ++i) set_sequence(parts[i], i);
  } else {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      set_sequence(parts[i], i);
      for (Encoding& part : parts[i].overflowing) set_sequence(part, i);
      set_types(parts[i], static_cast<std::uint32_t>(i));
    }
    for (const Step& s : steps) {
      if (parts.empty() || (parts.size() > 2 && s.kind == Step::Kind::templated)) {
        fail(ErrorCode::invalid_model, "the tokenizer's post-processors do not fit together: one passes {} parts to the next",
             parts.size());
      }
      if (parts.size() > 2 && (s.kind == Step::Kind::bert || s.kind == Step::Kind::roberta)) {
        fail(ErrorCode::invalid_model, "the tokenizer's post-processors do not fit together: one passes {} parts to the next",
             parts.size());
      }
      parts = apply(s, std::move(parts), add_special_tokens);
    }
  }
  Encoding out;
  for (Encoding& e : parts) merge_into(out, std::move(e));
  return out;
}

}  // namespace sdx::text
