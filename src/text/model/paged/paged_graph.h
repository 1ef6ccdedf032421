#pragma once
// Networks of one text made into networks of many: GroupQueryAttention over past and present becomes PagedAttention over blocks.

#include <string>

#include "graph/graph.h"
#include "text/model/decoder.h"

namespace sdx::text {

// Additional inputs of the rewritten network; docs/design/paged-attention.md describes their contents. All tokens of a step
// are in one row: input_ids [1,T], position_ids [1,T]. Pasts and presents are pools of blocks, with scales for int8 (their
// names and kScales). The mask is gone where nothing else reads it.
inline constexpr const char *kStarts = "sequence_starts", *kPastLengths = "past_lengths", *kTable = "block_table",
                            *kScales = ".scales";
// Networks with states of texts (docs/design/text-states.md) have sequence_starts and past_lengths already, state_slots
// int32[S,2], and pools of states whose names begin with these.
inline constexpr const char *kSlots = "state_slots", *kPastStates = "past_states.", *kPresentStates = "present_states.";

// Steps differ in their numbers of texts and tokens: plans for this many shapes are worth keeping.
inline constexpr std::size_t kPagedPlans = 64;

struct PagingOptions {
  DataType cache_type = DataType::undefined;  // undefined: the network's own
  // Whoever built the network answers for all else in it computing token by token. Otherwise only operators that are known to do
  // so are accepted, and logits become those of the places that the input `logits_indices` (int64[wanted]) names.
  bool known = false;
};

// Returns "" and has changed the network, or says why it cannot be, and has not.
std::string page_attention(Model& model, const DecoderNames& names, const PagingOptions& options);

}  // namespace sdx::text
