#include <gtest/gtest.h>

#include <filesystem>
#include <sdx/registry.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "project/find.h"
#include "support/errors.h"

namespace sdx {
namespace {

using namespace project;

namespace fs = std::filesystem;

constexpr const char* kFile =
    "# ours\n"
    "models:\n"
    "  resnet50: {path: models/resnet50.onnx, input_shapes: {input: [1, 3, 224, 224]}, dtype: float16, warmup: 50, iterations: "
    "100, description: a net, tags: [vision]}\n"
    "  # text\n"
    "  bert-base:  # the small one\n"
    "    path: models/bert-base.onnx\n"
    "    inputs:\n"
    "    - {name: input_ids, shape: [1, 128], dtype: int64}\n"
    "    - name: mask\n"
    "\n"
    "  # the end\n";

RegistryEntry entry(const std::string& name, const std::string& path) {
  RegistryEntry e;
  e.name = name;
  e.path = path;
  return e;
}

std::string error_of(const std::string& text) {
  return testing::error_message([&] { Registry::parse(text, "models.yaml"); });
}

TEST(Registry, ReadsBothSpellings) {
  const Registry r = Registry::parse(kFile, "some/models.yaml");
  ASSERT_EQ(r.entries().size(), 2u);
  const RegistryEntry& a = r.at("resnet50");
  EXPECT_EQ(a.file, fs::path("some/models/resnet50.onnx"));
  ASSERT_EQ(a.inputs.size(), 1u);
  EXPECT_EQ(a.inputs[0].name, "input");
  EXPECT_EQ(a.inputs[0].shape, (std::vector<std::int64_t>{1, 3, 224, 224}));
  EXPECT_EQ(a.dtype, DataType::float16);
  EXPECT_EQ(a.warmup, 50);
  EXPECT_EQ(a.iterations, 100);
  EXPECT_EQ(a.description, "a net");
  EXPECT_TRUE(a.has_tag("vision"));
  EXPECT_FALSE(a.has_tag("text"));
  const RegistryEntry& b = r.at("bert-base");
  ASSERT_EQ(b.inputs.size(), 2u);
  EXPECT_EQ(b.inputs[0].dtype, DataType::int64);
  EXPECT_EQ(b.inputs[0].shape, (std::vector<std::int64_t>{1, 128}));
  EXPECT_FALSE(b.inputs[1].shape);
  EXPECT_FALSE(b.warmup);
  EXPECT_TRUE(Registry::parse("", "m").entries().empty());
  EXPECT_TRUE(Registry::parse("models:\n", "m").entries().empty());
}

TEST(Registry, ErrorsNameThePlaceAndTheClosestMatch) {
  EXPECT_EQ(error_of("model: {}"), "models.yaml:1:1: unknown key 'model', did you mean 'models'?; known: models");
  EXPECT_NE(error_of("models:\n  a: {pth: x}").find("models.yaml:2:7: models.a: unknown key 'pth', did you mean 'path'?"),
            std::string::npos);
  EXPECT_NE(error_of("models:\n  a: {tags: x}").find("models.yaml:2:6: models.a: the key 'path' is missing"), std::string::npos);
  EXPECT_NE(error_of("models:\n  a: {path: x, dtype: flaot16}").find("2:23: models.a.dtype: unknown element type 'flaot16'"),
            std::string::npos);
  EXPECT_NE(error_of("models: {a: {path: x, dtype: flaot16}}").find("did you mean 'float16'?"), std::string::npos);
  for (const char* bad : {"models: [a]", "models: {a: x}", "models: {a: }", "models: {a: {path: x, warmup: -1}}",
                          "models: {a: {path: x, iterations: 0}}", "models: {a: {path: x, input_shapes: {i: [-1, 3]}}}",
                          "models: {a: {path: x, input_shapes: {i: 3}}}", "models: {a: {path: x, inputs: [{shape: [1]}]}}",
                          "models: {a: {path: x, inputs: [{name: i}, {name: i}]}}", "models: {a: {path: x}, a: {path: y}}",
                          "models: {a: {path: x, input_shapes: {i: [1]}, inputs: [{name: i, shape: [2]}]}}", "models: {"}) {
    EXPECT_TRUE(error_of(bad).starts_with("models.yaml:1:")) << bad << ": " << error_of(bad);
  }
}

TEST(Registry, UnknownNameGivesTheClosest) {
  const Registry r = Registry::parse(kFile, "m.yaml");
  EXPECT_EQ(testing::error_message([&] { r.at("resnet5"); }), "'m.yaml' has no model 'resnet5'; did you mean 'resnet50'?");
}

TEST(Registry, AddAndRemoveKeepTheRest) {
  Registry r = Registry::parse(kFile, "m.yaml");
  RegistryEntry e = entry("new: one", "a b.onnx");
  e.inputs = {{"x", std::vector<std::int64_t>{}, DataType::undefined}, {"y", std::nullopt, DataType::uint8}};
  e.dtype = DataType::bfloat16;
  e.warmup = 0;
  e.iterations = 7;
  e.description = "it's \"odd\" # really\n";
  e.tags = {"yes", "1", "two words"};
  r.add(e);
  const std::string text = kFile;
  const std::size_t at = text.find("\n  # the end");
  EXPECT_TRUE(r.text().starts_with(text.substr(0, at)));
  EXPECT_TRUE(r.text().ends_with(text.substr(at)));
  const RegistryEntry& got = r.at("new: one");
  EXPECT_EQ(got.path, "a b.onnx");
  ASSERT_EQ(got.inputs.size(), 2u);
  EXPECT_EQ(got.inputs[0].shape, std::vector<std::int64_t>{});
  EXPECT_EQ(got.inputs[1].dtype, DataType::uint8);
  EXPECT_EQ(got.description, e.description);
  EXPECT_EQ(got.tags, e.tags);
  r.remove("new: one");
  EXPECT_EQ(r.text(), text);
  r.remove("resnet50");
  EXPECT_EQ(r.text(), "# ours\nmodels:\n" + text.substr(text.find("  # text")));
  r.remove("bert-base");
  EXPECT_EQ(r.text(), "# ours\nmodels:\n  # text\n\n  # the end\n");
  EXPECT_TRUE(r.entries().empty());
  r.add(entry("a", "a.onnx"));
  EXPECT_EQ(r.at("a").path, "a.onnx");
}

TEST(Registry, AddToOtherLayouts) {
  const auto added = [](const char* before) {
    Registry r = Registry::parse(before, "m.yaml");
    r.add(entry("b", "b.onnx"));
    return r.text();
  };
  EXPECT_EQ(added(""), "models:\n  b:\n    path: b.onnx\n");
  EXPECT_EQ(added("# only this"), "# only this\nmodels:\n  b:\n    path: b.onnx\n");
  EXPECT_EQ(added("models: {}  # none\n"), "models: # none\n  b:\n    path: b.onnx\n");
  EXPECT_EQ(added("models:\n    a: {path: x}"), "models:\n    a: {path: x}\n    b:\n      path: b.onnx\n");
  EXPECT_EQ(added("models:\n  a:\n    path: x\n    description: |\n      one\n      # two\n"),
            "models:\n  a:\n    path: x\n    description: |\n      one\n      # two\n  b:\n    path: b.onnx\n");
}

TEST(Registry, RefusesWhatItCannotEditCleanly) {
  const auto refused = [](const char* before, bool add) {
    Registry r = Registry::parse(before, "m.yaml");
    EXPECT_THROW(add ? r.add(entry("b", "b.onnx")) : r.remove("a"), Error) << before;
    EXPECT_EQ(r.text(), before);
    EXPECT_FALSE(r.entries().empty());
  };
  refused("models: {a: {path: x}}", true);
  refused("models: {a: {path: x}}", false);
  refused("{models: {a: {path: x}}}", true);
  refused("models: {\n  a: {path: x}\n}\n", true);
  refused("models:\n  b: {path: x}\n", true);                        // taken
  refused("models:\n  a: &d {path: x}\n  c:\n    <<: *d\n", false);  // others refer to it
}

TEST(Registry, FileIsFoundInTheDocumentedOrder) {
  const fs::path root = fs::temp_directory_path() / ("sdx_registry_" + std::to_string(process_id()));
  fs::remove_all(root);
  fs::create_directories(root / "work");
  fs::create_directories(root / "home/models");
  Places places{root / "work", root / "home"};
  EXPECT_FALSE(registry_file(places));
  const auto put = [&](const char* file, const char* model) {
    Registry r = Registry::create(root / file);
    r.add(entry("net", model));
    r.save();
  };
  put("home/models.yaml", "h.onnx");
  EXPECT_EQ(registry_file(places), root / "home/models.yaml");
  put("work/models.yaml", "w.onnx");
  EXPECT_EQ(registry_file(places), root / "work/models.yaml");
  EXPECT_THROW(find_by_name("net", places), Error);  // the file that it names is not there
  write_file_atomically(root / "work/w.onnx", std::string("x"));
  write_file_atomically(root / "home/models/net.onnx", std::string("x"));
  auto found = find_by_name("net", places);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, root / "work/w.onnx");
  ASSERT_TRUE(found->entry);
  EXPECT_EQ(found->entry->name, "net");
  EXPECT_EQ(known_names(places), std::vector<std::string>{"net"});
  write_file_atomically(root / "work/sdx.yml", std::string("name: net"));
  EXPECT_EQ(find_by_name("net", places)->path, root / "work/sdx.yml");
  fs::remove(root / "work/sdx.yml");
  put("other.yaml", "work/w.onnx");
  places.registry = root / "other.yaml";
  EXPECT_EQ(registry_file(places), root / "other.yaml");
  EXPECT_EQ(find_by_name("net", places)->path, root / "work/w.onnx");
  fs::remove_all(root);
}

}  // namespace
}  // namespace sdx
