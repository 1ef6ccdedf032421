#pragma once
// How a language model that ranks documents is asked, where its folder says so.

#include <filesystem>
#include <string>

namespace sdx::text {

// What the folder's chat template makes of a message of the role "query" and one of the role "document", as
// sentence-transformers' CrossEncoder writes pairs: with {query} and {document} in place of the texts. `prompt`, unless empty, is
// the system's message.
// "": there is no template, or none that shows both messages. Throws Error(io), Error(invalid_argument) for files that cannot be
// read, Error(invalid_model) for a template that is none.
std::string pair_template_of(const std::filesystem::path& folder, const std::string& prompt);

}  // namespace sdx::text
