// Projects and registries through the installed library, which loads its YAML parser when it is needed.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sdx/project.hpp>
#include <sdx/registry.hpp>

#include "model.h"

namespace fs = std::filesystem;

int main() {
  const fs::path folder = fs::temp_directory_path() / "sdx_outside_project";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "m.onnx", std::ios::binary).write(reinterpret_cast<const char*>(kModel), sizeof kModel);
  sdx::InitOptions options;
  options.folder = folder;
  std::ofstream(folder / "sdx.yml") << sdx::project_text(folder / "m.onnx", options);
  const sdx::Project project = sdx::Project::open(folder);
  if (project.config().name != "m") return 1;
  const sdx::BuildReport report = project.build();
  if (!fs::is_regular_file(report.compiled)) return 2;
  const sdx::Session session = project.session();
  if (session.report().model != report.compiled.string()) return 3;
  const sdx::NamedValues out = session.run({{"x", sdx::Tensor::of<float>({3}, {1.0F, -2.0F, 0.5F})}});
  if (out.tensor("y").values<float>()[1] != 2.0F) return 4;
  sdx::Registry::edit(folder / "models.yaml", [](sdx::Registry& registry) {
    sdx::RegistryEntry entry;
    entry.name = "m";
    entry.path = "m.onnx";
    registry.add(entry);
  });
  if (sdx::Registry::open(folder / "models.yaml").at("m").path != "m.onnx") return 5;
  try {
    sdx::Registry::parse("models: [", "models.yaml");
    return 6;
  } catch (const sdx::Error& e) {
    std::puts(e.what());
  }
  fs::remove_all(folder);
  return 0;
}
