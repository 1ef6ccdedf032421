#include "serve/models/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

#include "serve/models/load_model.h"
#include "serve/models/model_files.h"
#include "support/gguf_bytes.h"
#include "support/session.h"
#include "support/temporary_folder.h"

namespace sdx::serve {
namespace {

using namespace sdx::testing;
namespace fs = std::filesystem;

class CatalogTest : public ::testing::Test {
 protected:
  static void write(const fs::path& path, const std::string& content) {
    fs::create_directories(path.parent_path());
    std::ofstream(path.string() + ".new", std::ios::binary) << content;
    fs::rename(path.string() + ".new", path);
  }
  // x -> factor * x
  static void write_model(const fs::path& path, float factor) {
    write(path, model_bytes("input x: float32[n,2]\nconstant f: float32[1] " + std::to_string(factor) +
                            "\ny = Mul(x, f)\noutput y: float32[n,2]\n"));
  }
  static float answer(Catalog& catalog, std::string_view name, std::string_view version = {}) {
    const ModelPtr model = catalog.get(name, version);
    return elements(model->tensors->batcher->run({{"x", floats({1, 2}, {1, 1})}}, {}).tensor("y")).at(0);
  }
  static std::vector<std::string> states(const Catalog& catalog) {
    std::vector<std::string> out;
    for (const ModelStatus& s : catalog.list()) out.push_back(s.name + " " + s.version + " " + std::string(name(s.state)));
    return out;
  }

  static bool knows(const Catalog& catalog, std::string_view name) {
    return std::ranges::any_of(catalog.list(), [&](const ModelStatus& s) { return s.name == name; });
  }

  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

using Strings = std::vector<std::string>;

TEST_F(CatalogTest, models_of_the_command_line_are_served_under_their_names) {
  write_model(folder_ / "double.onnx", 2);
  write_model(folder_ / "other.onnx", 3);
  Catalog catalog({.models = {{"", folder_ / "double.onnx"}, {"three", folder_ / "other.onnx"}}});
  EXPECT_TRUE(catalog.ready());
  EXPECT_EQ(states(catalog), (Strings{"double 1 READY", "three 1 READY"}));
  EXPECT_EQ(answer(catalog, "double"), 2);
  EXPECT_EQ(answer(catalog, "three", "1"), 3);
  EXPECT_FALSE(knows(catalog, "four"));
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("doubel"); }), {"no model 'doubel'", "'double'?"});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("three", "2"); }), {"no version '2'", "it has 1"});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("three", "1x"); }), {"no version '1x'"});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("three", "01"); }), {"no version '01'"});
}

TEST_F(CatalogTest, two_models_of_one_name_are_refused) {
  write_model(folder_ / "a/m.onnx", 2);
  write_model(folder_ / "b/m.onnx", 3);
  expect_parts(error_of(ErrorCode::invalid_argument,
                        [&] {
                          Catalog({.models = {{"", folder_ / "a/m.onnx"}, {"", folder_ / "b/m.onnx"}}});
                        }),
               {"two models are called 'm'"});
}

TEST_F(CatalogTest, a_repository_is_loaded_on_demand_newest_version_first) {
  write_model(folder_ / "plain.onnx", 5);
  write_model(folder_ / "numbered/1/model.onnx", 1);
  write_model(folder_ / "numbered/10/model.onnx", 10);
  write_model(folder_ / "numbered/9/model.onnx", 9);
  write(folder_ / "empty/readme.txt", "nothing");
  Catalog catalog({.repository = folder_, .watch = false});
  EXPECT_EQ(states(catalog), (Strings{"empty 1 UNAVAILABLE", "numbered 10 UNAVAILABLE", "plain 1 UNAVAILABLE"}));
  EXPECT_EQ(answer(catalog, "numbered"), 10);
  EXPECT_EQ(answer(catalog, "plain"), 5);
  EXPECT_EQ(states(catalog), (Strings{"empty 1 UNAVAILABLE", "numbered 10 READY", "plain 1 READY"}));
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("empty"); }), {"is not a model"});
  EXPECT_NE(catalog.list()[0].reason.find("is not a model"), std::string::npos);
}

TEST_F(CatalogTest, a_configuration_counts) {
  write_model(folder_ / "m/1/model.onnx", 1);
  write_model(folder_ / "m/2/other.onnx", 2);
  write(folder_ / "m/config.pbtxt",
        "max_batch_size: 4 default_model_filename: \"other.onnx\" version_policy { specific { versions: 2 } }\n"
        "input { name: \"x\" data_type: TYPE_FP32 dims: 2 }\n"
        "model_warmup { batch_size: 3 inputs { key: \"x\" value { data_type: TYPE_FP32 dims: 2 random_data: true } } }");
  write_model(folder_ / "wrong/1/model.onnx", 1);
  write(folder_ / "wrong/config.pbtxt", "input { name: \"z\" data_type: TYPE_FP32 dims: 2 }");
  write_model(folder_ / "unreadable/1/model.onnx", 1);
  write(folder_ / "unreadable/config.pbtxt", "input {{");
  Catalog catalog({.repository = folder_, .watch = false});
  EXPECT_EQ(answer(catalog, "m"), 2);
  EXPECT_EQ(catalog.get("m")->tensors->batch.max_batch_size, 4);
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("wrong"); }), {"input 'z' is not one of the model's"});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("unreadable"); }), {"config.pbtxt", "line 1"});
}

TEST_F(CatalogTest, links_that_leave_the_repository_are_refused) {
  write_model(folder_ / "outside/model.onnx", 2);
  write_model(folder_ / "inside/real/1/model.onnx", 3);
  fs::create_symlink(folder_ / "outside", folder_ / "inside/link");
  fs::create_directories(folder_ / "inside/file/1");
  fs::create_symlink(folder_ / "outside/model.onnx", folder_ / "inside/file/1/model.onnx");
  fs::create_symlink("real", folder_ / "inside/same");
  Catalog catalog({.repository = folder_ / "inside", .watch = false});
  EXPECT_EQ(answer(catalog, "same"), 3);
  for (const char* name : {"link", "file"}) {
    expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get(name); }), {"leads out of the repository"});
  }
  for (const char* name : {"../outside", "inside/../real", "/etc/passwd", ""}) EXPECT_THROW(catalog.get(name), Error) << name;
}

TEST_F(CatalogTest, labels_lie_beside_the_configuration) {
  const std::string config = "output { name: \"y\" data_type: TYPE_FP32 label_filename: \"labels.txt\" }";
  for (const char* model : {"flat/model.onnx", "numbered/1/model.onnx"}) {
    const fs::path folder = folder_ / "repo" / fs::path(model).begin()->string();
    write_model(folder_ / "repo" / model, 1);
    write(folder / "config.pbtxt", config);
    write(folder / "labels.txt", "cat\ndog\n");
  }
  write_model(folder_ / "repo/plain.onnx", 1);
  write(folder_ / "repo/secret.txt", "of the repository's folder");
  write(folder_ / "secret.txt", "of the folder above");
  Catalog catalog({.repository = folder_ / "repo", .watch = false});
  for (const char* name : {"flat", "numbered"}) {
    EXPECT_EQ(catalog.get(name)->tensors->labels.at(0).second, (Strings{"cat", "dog"}));
  }
  ModelSettings settings;
  settings.outputs.resize(1);
  settings.outputs[0].name = "y";
  const auto refused = [&](const char* model, std::string_view file, ErrorCode code, const char* why) {
    settings.outputs[0].label_file = file;
    expect_parts(error_of(code, [&] { catalog.load(model, settings); }), {why});
  };
  refused("flat", "secret.txt", ErrorCode::io, "there is no file 'secret.txt'");
  refused("plain", "secret.txt", ErrorCode::invalid_argument, "have a folder in the repository");
  for (const std::string_view file : {"../secret.txt", "..", ".hidden", "/etc/passwd"}) {
    refused("flat", file, ErrorCode::invalid_argument, "must be a file beside config.pbtxt");
  }
  fs::create_symlink(folder_ / "secret.txt", folder_ / "repo/flat/link.txt");
  refused("flat", "link.txt", ErrorCode::invalid_argument, "leads out of the repository");
}

TEST_F(CatalogTest, a_configuration_that_breaks_stops_loading) {
  write_model(folder_ / "m/1/model.onnx", 1);
  write(folder_ / "m/config.pbtxt", "max_batch_size: 4");
  Catalog catalog({.repository = folder_, .watch = true});
  write(folder_ / "m/config.pbtxt", "max_batch_size {{");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (catalog.list().at(0).reason.empty() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("m"); }), {"cannot be served", "line 1"});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.load("m"); }), {"cannot be served", "line 1"});
}

TEST_F(CatalogTest, a_load_that_fails_leaves_the_model_unloaded) {
  write_model(folder_ / "m.onnx", 2);
  Catalog catalog({.repository = folder_, .watch = false});
  catalog.unload("m");
  write(folder_ / "m.onnx", "broken");
  EXPECT_THROW(catalog.load("m"), Error);
  write_model(folder_ / "m.onnx", 2);
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("m"); }), {"is unloaded"});
  ModelSettings wrong;
  wrong.outputs.resize(1);
  wrong.outputs[0].name = "z";
  EXPECT_THROW(catalog.load("m", wrong), Error);
  catalog.load("m");
  EXPECT_EQ(answer(catalog, "m"), 2);
}

TEST_F(CatalogTest, what_memory_was_needed_for_is_not_loaded_by_the_watcher) {
  for (const char* version : {"1", "2"}) write_model(folder_ / "m" / version / "model.onnx", 1);
  write(folder_ / "m/config.pbtxt", "version_policy { all {} }");
  const std::uint64_t bytes = fs::file_size(folder_ / "m/1/model.onnx");
  std::atomic<int> loads{0};
  const auto log = [&](std::string_view, std::string_view message) { loads += message.ends_with("is loaded") ? 1 : 0; };
  Catalog catalog({.repository = folder_, .watch = true, .memory_limit = bytes + bytes / 2, .log = log});
  answer(catalog, "m", "1");
  answer(catalog, "m", "2");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (const char* name : {"a", "b"}) {  // when the second one is known, the watcher is done with what it saw with the first
    write_model(folder_ / (std::string(name) + ".onnx"), 1);
    while (!knows(catalog, name) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(answer(catalog, "m", "1"), 1);
}

TEST_F(CatalogTest, models_may_outlive_their_catalogue_for_a_while) {
  write_model(folder_ / "m.onnx", 2);
  std::thread holder;
  {
    Catalog catalog({.models = {{"m", folder_ / "m.onnx"}}});
    holder = std::thread([held = catalog.get("m")] { EXPECT_EQ(held->name, "m"); });
  }
  holder.join();
}

TEST_F(CatalogTest, unloading_waits_and_lasts_until_loading) {
  write_model(folder_ / "m.onnx", 2);
  Catalog catalog({.repository = folder_, .watch = false});
  ModelPtr held = catalog.get("m");
  std::atomic<bool> unloaded{false};
  std::thread other([&] {
    catalog.unload("m");
    unloaded = true;
  });
  while (states(catalog).at(0) != "m 1 UNLOADING") std::this_thread::yield();
  EXPECT_FALSE(unloaded);
  held.reset();
  other.join();
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { catalog.get("m"); }), {"is unloaded"});
  write_model(folder_ / "m.onnx", 4);
  catalog.load("m");
  EXPECT_EQ(answer(catalog, "m"), 4);
}

TEST_F(CatalogTest, a_load_that_fails_keeps_what_serves) {
  write_model(folder_ / "m.onnx", 2);
  Catalog catalog({.repository = folder_, .watch = false});
  EXPECT_EQ(answer(catalog, "m"), 2);
  write(folder_ / "m.onnx", "broken");
  EXPECT_THROW(catalog.load("m"), Error);
  EXPECT_EQ(answer(catalog, "m"), 2);
  EXPECT_NE(catalog.list()[0].reason, "");
}

TEST_F(CatalogTest, memory_is_given_back_by_the_model_used_longest_ago) {
  std::uint64_t bytes = 0;
  for (const char* name : {"a", "b", "c"}) {
    write_model(folder_ / (std::string(name) + ".onnx"), 2);
    bytes = fs::file_size(folder_ / (std::string(name) + ".onnx"));
  }
  Catalog catalog({.repository = folder_, .watch = false, .memory_limit = 2 * bytes + bytes / 2});
  answer(catalog, "a");
  answer(catalog, "b");
  const ModelPtr used = catalog.get("a");  // in use, and the last one used
  answer(catalog, "c");
  EXPECT_EQ(states(catalog), (Strings{"a 1 READY", "b 1 UNAVAILABLE", "c 1 READY"}));
  EXPECT_EQ(answer(catalog, "b"), 2);  // loaded again; `a` stays, for it is in use
  EXPECT_EQ(states(catalog), (Strings{"a 1 READY", "b 1 READY", "c 1 UNAVAILABLE"}));
}

TEST_F(CatalogTest, caches_of_language_models_count_as_memory) {
  const char* models = std::getenv("SDX_TEST_MODELS");
  if (models == nullptr) GTEST_SKIP() << "SDX_TEST_MODELS is not set";
  const fs::path model = fs::path(models) / "llm_stories260k/genai_fp32";
  constexpr std::uint64_t kMiB = 1 << 20, kLimit = 1000 * kMiB;
  for (const char* name : {"a", "b", "c"}) fs::create_directory_symlink(model, folder_ / name);
  Catalog catalog({.models = {{"a", folder_ / "a"}, {"b", folder_ / "b"}, {"c", folder_ / "c"}}, .memory_limit = kLimit});
  std::uint64_t left = kLimit, all = 0;
  for (const char* name : {"a", "b", "c"}) {
    const ModelPtr m = catalog.get(name);
    const EngineStatus status = m->language->engine->status();
    const std::uint64_t cache = status.cache_limit, files = m->bytes - cache;
    EXPECT_GT(files, 0U);
    EXPECT_EQ(cache, (left - files) / 2);
    // A tenth of the limit, in whole blocks.
    EXPECT_LE(status.prefix_limit, kLimit / 10);
    EXPECT_GT(status.prefix_limit, kLimit / 10 - kMiB);
    left -= m->bytes;
    all += m->bytes;
  }
  EXPECT_LE(all, kLimit);
  catalog.load("a");  // the one before does not count
  EXPECT_GT(catalog.get("a")->bytes, 60 * kMiB);
  // A limit of the engine's own stays; without room there is the least.
  EngineOptions engine;
  engine.cache_bytes = 7 * kMiB;
  EXPECT_EQ(Catalog({.models = {{"a", model}}, .memory_limit = kLimit, .engine = engine})
                .get("a")
                ->language->engine->status()
                .cache_limit,
            7 * kMiB);
  EXPECT_EQ(Catalog({.models = {{"a", model}}, .memory_limit = 1}).get("a")->language->engine->status().cache_limit, 64 * kMiB);
}

TEST_F(CatalogTest, changes_are_served_without_a_failed_request) {
  write_model(folder_ / "m/1/model.onnx", 1);
  Catalog catalog({.repository = folder_, .watch = true});
  EXPECT_EQ(answer(catalog, "m"), 1);
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::thread client([&] {
    float last = 1;
    while (!stop) {
      try {
        const float got = answer(catalog, "m");
        if (got < last || got > 3) ++failed;  // nobody falls back behind a newer version
        last = got;
      } catch (const Error&) {
        ++failed;
      }
    }
  });
  const auto wait_for = [&](float wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (answer(catalog, "m") != wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(answer(catalog, "m"), wanted);
  };
  write_model(folder_ / "m/1/model.onnx", 2);
  wait_for(2);
  write_model(folder_ / "m/2/model.onnx", 3);
  wait_for(3);
  stop = true;
  client.join();
  EXPECT_EQ(failed, 0);
}

// A model of the command line, by `cp` over it and by rename.
TEST_F(CatalogTest, models_of_the_command_line_are_loaded_again_when_their_files_change) {
  const auto wait_for = [](Catalog& catalog, float wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (answer(catalog, "m") != wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(answer(catalog, "m"), wanted);
  };
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto log = [&](std::string_view level, std::string_view message) {
    const std::lock_guard lock(mutex);
    lines.push_back(std::string(level) + " " + std::string(message));
  };
  const auto logged = [&](std::string_view part) {
    const std::lock_guard lock(mutex);
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  write_model(folder_ / "m.onnx", 2);
  Catalog catalog({.models = {{"m", folder_ / "m.onnx"}}, .log = log});
  EXPECT_EQ(answer(catalog, "m"), 2);
  EXPECT_FALSE(logged("changed on disk"));
  write_model(folder_ / "other.onnx", 3);
  fs::copy_file(folder_ / "other.onnx", folder_ / "m.onnx", fs::copy_options::overwrite_existing);
  wait_for(catalog, 3);
  EXPECT_TRUE(logged("info model 'm' has changed on disk and is loaded again"));
  write_model(folder_ / "m.onnx", 4);
  wait_for(catalog, 4);
  // A model that cannot be loaded is reported, and the previous one continues to serve; so does a model whose file is gone.
  std::ofstream(folder_ / "m.onnx") << "no model";
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!logged("error model 'm'") && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(logged("error model 'm'"));
  EXPECT_EQ(answer(catalog, "m"), 4);
  write_model(folder_ / "m.onnx", 5);
  wait_for(catalog, 5);
  fs::remove(folder_ / "m.onnx");
  EXPECT_EQ(answer(catalog, "m"), 5);
}

TEST_F(CatalogTest, a_stamp_of_files_tells_changed_from_missing) {
  write(folder_ / "w.bin", "12345678");
  const std::string text = "input x: float32[n,2]\nconstant f: float32[1] 2\ny = Mul(x, f)\noutput y: float32[n,2]\n";
  write(folder_ / "m.onnx", model_bytes(text));
  EXPECT_EQ(files_of_model(folder_ / "m.onnx"), std::vector<fs::path>{folder_ / "m.onnx"});
  const auto before = files_stamp({folder_ / "m.onnx", folder_ / "w.bin"});
  ASSERT_TRUE(before);
  write(folder_ / "w.bin", "123456789");
  EXPECT_NE(files_stamp({folder_ / "m.onnx", folder_ / "w.bin"}), before);
  fs::remove(folder_ / "w.bin");
  EXPECT_FALSE(files_stamp({folder_ / "m.onnx", folder_ / "w.bin"}));
  EXPECT_TRUE(files_of_model(folder_ / "nothing.onnx").empty());
}

TEST(ModelFiles, kinds_are_told_from_the_files) {
  const char* models = std::getenv("SDX_TEST_MODELS");
  if (models == nullptr) GTEST_SKIP() << "SDX_TEST_MODELS is not set";
  const fs::path root(models);
  EXPECT_EQ(recognise_model(root / "llm_stories260k/genai_fp32").kind, ModelKind::language);
  EXPECT_EQ(recognise_model(root / "ext_mnist").kind, ModelKind::tensors);
}

class ModelFilesTest : public CatalogTest {
 protected:
  std::string kind(const std::string& place) const {
    try {
      const ModelFiles files = recognise_model(folder_ / place);
      constexpr const char* kKinds[] = {"tensors", "language", "embedding", "reranker"};
      return std::string(kKinds[static_cast<std::size_t>(files.kind)]) + " " + fs::relative(files.path, folder_).string();
    } catch (const Error& e) {
      return e.message();
    }
  }
};

TEST_F(ModelFilesTest, cards_and_modules_say_what_language_models_are_for) {
  write(folder_ / "m/config.json", R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]})");
  write(folder_ / "m/model.safetensors", "x");
  const auto with_card = [&](const std::string& text) {
    write(folder_ / "m/README.md", text);
    return kind("m");
  };
  EXPECT_EQ(with_card("---\nlicense: apache-2.0\npipeline_tag: text-ranking\n---\n# Qwen3-Reranker\n"), "reranker m");
  EXPECT_EQ(with_card("---\r\npipeline_tag:  \"text-ranking\" \r\n---\r\n"), "reranker m");
  EXPECT_EQ(with_card("---\npipeline_tag: text-generation\n---\npipeline_tag: text-ranking\n"), "language m");
  EXPECT_EQ(with_card("---\npipeline_tag: text-ranking-other\n---\n"), "language m");
  EXPECT_EQ(with_card("pipeline_tag: text-ranking\n"), "language m");

  const auto with_modules = [&](const std::string& text) {
    write(folder_ / "m/modules.json", text);
    return kind("m");
  };
  const std::string first = R"([{"type": "sentence_transformers.base.modules.transformer.Transformer"})";
  EXPECT_EQ(with_modules(first + R"(, {"type": "sentence_transformers.models.Pooling"}])"), "embedding m");
  EXPECT_EQ(with_modules(first + R"(, {"type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}])"),
            "reranker m");
  EXPECT_EQ(with_modules("no list"), "embedding m");
  EXPECT_EQ(with_modules(first + "]"), "embedding m");
  write(folder_ / "m/config.json", R"({"architectures": ["Qwen3ForSequenceClassification"]})");
  EXPECT_EQ(kind("m"), "reranker m");
  EXPECT_EQ(with_modules(first + R"(, {"type": "sentence_transformers.models.Pooling"}])"), "embedding m");
  write(folder_ / "m/config_sentence_transformers.json", R"({"model_type": "CrossEncoder"})");
  EXPECT_EQ(kind("m"), "reranker m");
}

TEST_F(ModelFilesTest, folders_of_weights_are_told_by_their_networks) {
  write(folder_ / "hf/config.json", "{}");
  write(folder_ / "hf/model.safetensors", "x");
  EXPECT_EQ(kind("hf"), "language hf");
  write(folder_ / "shards/config.json", "{}");
  write(folder_ / "shards/model.safetensors.index.json", "{}");
  EXPECT_EQ(kind("shards"), "language shards");
  write(folder_ / "encoder/config.json", R"({"model_type": "xlm-roberta"})");
  write(folder_ / "encoder/model.safetensors", "x");
  EXPECT_EQ(kind("encoder"), "embedding encoder");
  write(folder_ / "gguf/bert.gguf", test::GgufBytes().text("general.architecture", "bert").text("x", "y").bytes());
  EXPECT_EQ(kind("gguf/bert.gguf"), "embedding gguf/bert.gguf");
  for (const auto& [pooling, expected] : {std::pair(0U, "language"), {3U, "embedding"}, {4U, "reranker"}}) {
    write(folder_ / "gguf/qwen.gguf",
          test::GgufBytes().text("general.architecture", "qwen3").u32("qwen3.pooling_type", pooling).bytes());
    EXPECT_EQ(kind("gguf/qwen.gguf"), std::string(expected) + " gguf/qwen.gguf");
  }
  write(folder_ / "cross/config.json", R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"]})");
  write(folder_ / "cross/model.safetensors", "x");
  EXPECT_EQ(kind("cross"), "reranker cross");
  write(folder_ / "hf/config.json", R"({"model_type": "qwen3", "classifier_from_token": ["no", "yes"]})");
  EXPECT_EQ(kind("hf"), "reranker hf");
  write(folder_ / "hf/config.json", R"({"model_type": "qwen3", "is_original_qwen3_reranker": true})");
  EXPECT_EQ(kind("hf"), "reranker hf");
  write(folder_ / "vision/model.gguf", "x");
  write(folder_ / "vision/mmproj.gguf", "x");
  EXPECT_EQ(kind("vision"), "language vision/model.gguf");
  write(folder_ / "split/m-00001-of-00002.gguf", "x");
  write(folder_ / "split/m-00002-of-00002.gguf", "x");
  EXPECT_EQ(kind("split"), "language split/m-00001-of-00002.gguf");
  write(folder_ / "two/a.gguf", "x");
  write(folder_ / "two/b.gguf", "x");
  EXPECT_NE(kind("two").find("has 2 models ('a.gguf', 'b.gguf'): name one of the files"), std::string::npos) << kind("two");
  EXPECT_NE(kind("hf/..").find("is not a model"), std::string::npos) << kind("hf/..");
}

TEST_F(ModelFilesTest, a_split_model_is_one) {
  const fs::path first = folder_ / "m-00001-of-00002.gguf", second = folder_ / "m-00002-of-00002.gguf";
  write(first, "first");
  write(second, "the second");
  write(folder_ / "mmproj-m.gguf", "x");
  EXPECT_EQ(model_bytes_on_disk(first), 15U);
  Catalog catalog({.repository = folder_, .watch = false});
  EXPECT_EQ(states(catalog), (Strings{"m 1 UNAVAILABLE"}));
  // A change of any part is one of the model.
  const std::string before = model_stamp(first);
  write(second, "another second");
  EXPECT_NE(model_stamp(first), before);
  fs::remove(second);
  fs::create_symlink("/etc/hostname", second);
  EXPECT_THROW(check_inside(first, fs::canonical(folder_)), Error);
}

TEST(LoadModel, a_batch_axis_is_open_everywhere_and_no_length) {
  const Session yes = open("input x: float32[batch,2]\ny = Add(x, x)\noutput y: float32[batch,2]\n");
  EXPECT_TRUE(looks_batched(yes.inputs(), yes.outputs()));
  const Session length = open("input x: float32[seq_len,2]\ny = Add(x, x)\noutput y: float32[seq_len,2]\n");
  EXPECT_FALSE(looks_batched(length.inputs(), length.outputs()));
  const Session fixed = open("input x: float32[n,2]\ninput w: float32[2]\ny = Add(x, w)\noutput y: float32[n,2]\n");
  EXPECT_FALSE(looks_batched(fixed.inputs(), fixed.outputs()));
}

}  // namespace
}  // namespace sdx::serve
