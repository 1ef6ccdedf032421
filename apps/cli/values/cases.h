#pragma once
// Recorded answers: which values to feed and what to expect.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::cli {

struct CaseSet {
  std::string name;
  // Input or output name -> file, or file.npz and the array's name behind '#'. An empty name: by position.
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
};

struct Case {
  std::filesystem::path model;  // empty where the source names none
  std::vector<CaseSet> sets;
};

// A .case.json: {"model": FILE, "sets": [{"inputs": {NAME: FILE}, "outputs": {NAME: FILE}}]}, or with one set's "inputs" and
// "outputs" at the top. Files are relative to the case file. The model is looked for there, too, then in each folder above,
// and where such a folder is called X_expected, in the folder X beside it. Throws Error.
Case read_case_file(const std::filesystem::path& path);

// Recorded values for a model: a folder with test_data_set_* folders; a folder with input_N.pb and output_N.pb (or .npy, or
// in_N/out_N), or with inputs.npz and outputs.npz; or one .npz that holds inputs and outputs by name. Throws Error.
Case read_case_folder(const std::filesystem::path& path, const std::vector<ValueSpec>& inputs,
                      const std::vector<ValueSpec>& outputs);

}  // namespace sdx::cli
