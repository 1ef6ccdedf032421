#include <protozero/pbf_reader.hpp>

#include "base/error.h"
#include "text/tokenizer/load/load.h"
#include "text/tokenizer/load/pieces.h"

namespace sdx::text {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

std::string_view view_of(pbf_reader& reader) {
  const protozero::data_view v = reader.get_view();
  return {v.data(), v.size()};
}

// Numbers of fields: sentencepiece_model.proto.
ScoredPiece read_piece(pbf_reader piece) {
  ScoredPiece p;
  while (piece.next()) {
    switch (piece.tag_and_type()) {
      case tag_and_type(1, pbf_wire_type::length_delimited): p.text = view_of(piece); break;
      case tag_and_type(2, pbf_wire_type::fixed32): p.score = piece.get_float(); break;
      case tag_and_type(3, pbf_wire_type::varint): {
        const int type = piece.get_enum();
        if (type < 1 || type > 6) fail(ErrorCode::invalid_model, "the piece '{}' has the unknown type {}", p.text, type);
        p.type = static_cast<PieceType>(type);
        break;
      }
      default: piece.skip();
    }
  }
  return p;
}

struct Trainer {
  int model = 1;
  std::int64_t unk = 0, bos = 1, eos = 2;
};

void read_trainer(pbf_reader spec, PieceVocabulary& v, Trainer& trainer) {
  while (spec.next()) {
    switch (spec.tag_and_type()) {
      case tag_and_type(3, pbf_wire_type::varint): trainer.model = spec.get_enum(); break;
      case tag_and_type(24, pbf_wire_type::varint): v.rules.whitespace_as_suffix = spec.get_bool(); break;
      case tag_and_type(35, pbf_wire_type::varint): v.byte_fallback = spec.get_bool(); break;
      case tag_and_type(40, pbf_wire_type::varint): trainer.unk = spec.get_int32(); break;
      case tag_and_type(41, pbf_wire_type::varint): trainer.bos = spec.get_int32(); break;
      case tag_and_type(42, pbf_wire_type::varint): trainer.eos = spec.get_int32(); break;
      default: spec.skip();
    }
  }
}

void read_normalizer(pbf_reader spec, PieceVocabulary& v) {
  while (spec.next()) {
    switch (spec.tag_and_type()) {
      case tag_and_type(2, pbf_wire_type::length_delimited): v.charsmap = std::string(view_of(spec)); break;
      case tag_and_type(3, pbf_wire_type::varint): v.rules.add_dummy_prefix = spec.get_bool(); break;
      case tag_and_type(4, pbf_wire_type::varint): v.rules.remove_extra_whitespaces = spec.get_bool(); break;
      case tag_and_type(5, pbf_wire_type::varint): v.rules.escape_whitespaces = spec.get_bool(); break;
      default: spec.skip();
    }
  }
}

}  // namespace

std::shared_ptr<TokenizerPipeline> pipeline_of_sentencepiece(std::string_view bytes, const SentencePieceSettings& settings) {
  PieceVocabulary v;
  Trainer trainer;
  try {
    pbf_reader model(bytes.data(), bytes.size());
    while (model.next()) {
      switch (model.tag_and_type()) {
        case tag_and_type(1, pbf_wire_type::length_delimited): v.pieces.push_back(read_piece(model.get_message())); break;
        case tag_and_type(2, pbf_wire_type::length_delimited): read_trainer(model.get_message(), v, trainer); break;
        case tag_and_type(3, pbf_wire_type::length_delimited): read_normalizer(model.get_message(), v); break;
        default: model.skip();
      }
    }
  } catch (const protozero::exception& e) {
    fail(ErrorCode::invalid_model, "not a SentencePiece model: broken protobuf ({})", e.what());
  }
  if (trainer.model != 1 && trainer.model != 2) {
    fail(ErrorCode::not_implemented, "SentencePiece model of type {}; expected 1 (unigram) or 2 (BPE)", trainer.model);
  }
  v.unigram = trainer.model == 1;
  const auto token = [&](std::int64_t id) { return id >= 0 ? std::optional(static_cast<std::uint32_t>(id)) : std::nullopt; };
  v.bos = token(trainer.bos);
  v.eos = token(trainer.eos);
  v.add_bos = settings.add_bos;
  v.add_eos = settings.add_eos;
  v.finds_control = settings.finds_control;
  return pipeline_of_pieces(std::move(v));
}

}  // namespace sdx::text
