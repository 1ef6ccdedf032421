#pragma once
// What `sdx doctor` finds out about an installation. Nothing here prints.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <sdx/provider.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/module/look.h"
#include "base/system/cpu/report.h"
#include "base/system/cpu/share.h"

namespace sdx::cli::doctor {

// The command and the engine that it runs with.
struct Build {
  std::string version, engine_version;
  std::string id, engine_id;      // of the build
  std::string how;                // "Release, GNU 12.2.0"
  std::filesystem::path command;  // empty: the system does not say
  std::filesystem::path engine;   // libsdx.so; empty: it is part of the command
  bool fits() const { return id == engine_id; }
};

// A library of the installation.
struct Part {
  std::string name;     // "text"
  std::string purpose;  // "language models, tokenizers"
  LibraryLook look;
};

struct Processor {
  std::string name;
  std::vector<CpuInstructions> instructions;
  std::string problem;  // with SDX_CPU_ISA; empty: none
};

struct Threads {
  CpuShare share;
  int used = 0;          // by the shared pool
  std::string variable;  // SDX_THREADS; empty: not set
};

struct CacheFacts {
  std::filesystem::path folder;  // empty: there is none
  bool exists = false;
  std::string problem, hint;  // why it cannot be used; empty: it can
  std::uint64_t bytes = 0;
  std::size_t entries = 0;
};

struct ModelFacts {
  std::filesystem::path folder;      // of `sdx pull`; empty: there is none
  std::size_t models = 0;            // in it
  std::filesystem::path registry;    // empty: there is none
  std::size_t listed = 0, gone = 0;  // models in the registry; those whose files are not there
  std::string problem;               // why the registry cannot be read; empty: it can
};

struct ProjectFacts {
  std::filesystem::path file;  // of the current folder; empty: there is none
  std::string name;
  std::string problem;  // why it cannot be read; empty: it can
};

struct HubFacts {
  std::string endpoint;
  std::string problem;               // with the endpoint's address; empty: none
  bool token = false;                // whether there is one
  std::vector<std::string> proxies;  // names of the variables that are set
};

struct Facts {
  Build build;
  std::vector<Part> parts;
  Processor processor;
  Threads threads;
  std::vector<ProviderInfo> providers;
  CacheFacts cache;
  ModelFacts models;
  ProjectFacts project;
  HubFacts hub;
  std::vector<std::string> variables;  // names of the engine's own that are set
};

// Runs no model, changes nothing, and uses no network.
Facts collect();

// The build of the command's own code.
std::string_view own_build() noexcept;

// Each thing that is there and does not work: "heif: …".
std::vector<std::string> problems(const Facts& facts);

// For people, in lines of at most `width` columns where they can be broken.
std::string text_of(const Facts& facts, std::size_t width);
std::string json_of(const Facts& facts);

}  // namespace sdx::cli::doctor
