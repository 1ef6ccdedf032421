#pragma once
// Inputs from the command line: JSON, .npy, .npz, .pb, images, sound.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include <sdx/project.hpp>

#include "cli/arguments.h"

namespace sdx::cli {

// The inputs read so far.
struct UsedMedia {
  bool pictures = false, sound = false;
};

struct ReadInputs {
  NamedValues values;
  std::string made_up;  // the note about made-up integers in errors of the run; "" if there are none
};

struct InputFlags {
  std::vector<std::string> inputs;  // -i
  std::vector<std::string> files;   // -f
  bool random = false;
  std::uint64_t seed = 0;
  std::vector<std::string> shapes;  // NAME=1x3x224x224
  std::string resize, crop, fit, filter, fill, layout, color, normalize, mean, deviation, scale;
  int rate = 0;
  const ProjectConfig* project = nullptr;  // whose preprocessing applies unless a flag was typed; not owned
  std::shared_ptr<UsedMedia> used = std::make_shared<UsedMedia>();  // copies of the flags share it

  void add_to(const Command& command);
  // The project's settings for the input, unless a flag was typed. Throws UsageError for flags that make no sense.
  Preprocessing preprocessing(const std::string& input) const;
  // "--resize has no effect: …", when flags for pictures or sound were typed but none was read; otherwise empty.
  std::string without_effect() const;
  // Values for the model's inputs. Throws UsageError for names that the model does not have, for missing inputs (listing
  // them with their types) and for flags without effect, Error for files that cannot be read.
  // `model` and `options` as the session has them: with --random, integers stay in the range that the model indexes.
  ReadInputs read(const std::vector<ValueSpec>& specs, const std::filesystem::path& model, const SessionOptions& options) const;
  // Only what -i and -f give, and the shapes of --shape by input name.
  NamedValues given(const std::vector<ValueSpec>& specs) const;
  std::vector<std::pair<std::string, Shape>> given_shapes(const std::vector<ValueSpec>& specs) const;
};

// "NAME=VALUE" taken apart; `spec` is null where there is no name. Throws UsageError for a name that the model does not have.
struct NamedText {
  const ValueSpec* spec = nullptr;
  std::string text;
};
NamedText split_input(const std::vector<ValueSpec>& specs, const std::string& text);
// The one input that must be given. Throws UsageError naming all where there are several.
const ValueSpec& only_input(const std::vector<ValueSpec>& specs, const std::string& text);
// A JSON document as the values of inputs: an object of names, or the value of the one input that must be given.
NamedValues values_from_json(const std::string& text, const std::string& what, const std::vector<ValueSpec>& specs);

// One value from a file, by its ending; `spec` may be null. Converts elements where that loses nothing but precision.
Value read_value_file(const std::string& path, const ValueSpec* spec, const InputFlags& flags);

// The same from standard input, which may hold a picture, sound, .npy or JSON.
Value read_standard_input(const ValueSpec& spec, const InputFlags& flags);

// Converts `t` to the element type that the model wants. Numbers are converted if every value fits; floats may be rounded. Throws
// Error(invalid_argument) otherwise.
Tensor convert_elements(const Tensor& t, DataType wanted, std::string_view name);

// "  input: float32[batch,3,224,224]" for each.
std::string describe_inputs(const std::vector<ValueSpec>& specs);

}  // namespace sdx::cli
