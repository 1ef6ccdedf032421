#include "onnx/writer.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "onnx/external_names.h"
#include "onnx/functions.h"
#include "support/errors.h"
#include "support/proto.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;
using namespace testing;

void expect_round_trip(const Model& m, const std::string& what) {
  const Model again = read(write_model(m));
  again.graph.verify();
  EXPECT_EQ(again.graph.dump(), m.graph.dump()) << what;
  EXPECT_EQ(again.opsets, m.opsets) << what;
  EXPECT_EQ(again.metadata, m.metadata) << what;
  EXPECT_EQ(again.functions.size(), m.functions.size()) << what;
}

TEST(Writer, RoundTripsEveryKindOfContent) {
  const std::string branch = graph(
      {{node("Add", {"x", "w"}, {"i"})}, {}, {value("i", 1, {2, kAny})}, {tensor("own", {2}, 7, std::string(16, 'a'))}, {}, {}});
  GraphParts p = relu_parts();
  p.inputs.push_back(value("c", 9, {}));
  p.inputs.push_back(value("w", 1, {2, 3}));
  p.initializers = {tensor("w", {2, 3}, 1, floats(6)), tensor("e", {0, 4}, 1, "")};
  p.nodes = {node("F", {"x", "", "e"}, {"z", "", "unused"}, {int_attribute("k", 3)}, "my"),
             node("If", {"c"}, {"q"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}),
             node("Add", {"z", "q"}, {"y"})};
  p.infos = {value("z", 1, {kAny, 3}), value("q", 1, {})};
  const FunctionParts f{"my", "F", {"a"}, {"b"}, {"k"}, {}, {node("Neg", {"a"}, {"b"})}};
  Model m = read(model(graph(p), {8, {opset("", 17), opset("my", 1)}, {function(f)}}));
  m.metadata = {{"k", "v"}, {"", "empty key"}};
  expect_round_trip(m, "built");
}

// Found by fuzzing: sorting the nodes changes which capture is used first, two levels down as well.
TEST(Writer, RoundTripsUnsortedGraphs) {
  const std::string inner =
      graph({{node("Add", {"k", "c"}, {"q"}), node("Neg", {"x"}, {"k"})}, {}, {value("q", 1, {2})}, {}, {}, {}});
  const std::string outer =
      graph({{node("Add", {"late", "w"}, {"r"}), node("If", {"c"}, {"o"}, {graph_attribute("then_branch", inner)}),
              node("Add", {"o", "x"}, {"late"})},
             {},
             {value("r", 1, {2})},
             {},
             {},
             {}});
  GraphParts p = relu_parts();
  p.inputs.push_back(value("c", 9, {}));
  p.inputs.push_back(value("w", 1, {2, 3}));
  p.nodes = {node("If", {"c"}, {"y"}, {graph_attribute("then_branch", outer)})};
  const Model m = read(model(graph(p)));
  m.graph.verify();
  const Subgraph& then = m.graph.node(0).subgraphs[0];
  EXPECT_EQ(then.captures, (std::vector<ValueId>{1, 0, 2}));  // c, x, w
  expect_round_trip(m, "unsorted");
}

// com.microsoft.BeamSearch knows the inputs of its decoders by their names, which those of the graph around them have as well.
TEST(Writer, InputsOfSubgraphsKeepTheirNames) {
  const std::string body = graph({{node("Neg", {"x"}, {"q"})}, {value("x", 1, {2})}, {value("q", 1, {2})}, {}, {}, {}});
  GraphParts p = relu_parts();
  p.nodes = {node("Scan", {"x"}, {"y"}, {graph_attribute("body", body), int_attribute("num_scan_inputs", 1)})};
  const Model m = read(model(graph(p)));
  const Model again = read(write_model(m));
  const Graph& written = *again.graph.node(0).subgraphs[0].graph;
  EXPECT_EQ(written.value(written.inputs()[0]).name, "x");
  expect_round_trip(m, "body");
}

TEST(Writer, AttributesOfEveryKind) {
  Model m = read(model(graph(relu_parts())));
  Attributes& a = m.graph.node(0).attributes;
  a.set("i", std::int64_t{-5});
  a.set("f", 1.5F);
  a.set("s", std::string("a\0b", 3));
  a.set("t", Tensor::of<std::string>({2}, {"one", "two"}));
  a.set("ints", std::vector<std::int64_t>{1, -2, INT64_MIN});
  a.set("floats", std::vector<float>{0.5F, -1.0F});
  a.set("strings", std::vector<std::string>{"", "x"});
  a.set("tensors", std::vector<Tensor>{Tensor::scalar<double>(2), Tensor::of<bool>({3}, {true, false, true})});
  a.set("type", Type::sequence(Type::map(DataType::int64, Type::tensor(DataType::float32, SymShape{}))));
  a.set("types", std::vector<Type>{Type::optional(Type::tensor(DataType::int4, {Dim::unknown(), Dim::symbol("n"), 3})), Type()});
  a.set("none", std::vector<std::int64_t>{});
  expect_round_trip(m, "attributes");
}

TEST(Writer, TensorsOfEveryType) {
  for (int number = 1; number < kDataTypeCount; ++number) {
    const auto type = static_cast<DataType>(number);
    Tensor t(type, {3, 3});
    if (type == DataType::string) {
      t.mutable_values<std::string>()[4] = "word";
    } else {
      auto* bytes = static_cast<unsigned char*>(t.mutable_data());
      const unsigned mask =
          type == DataType::boolean ? 1 : (type == DataType::float6e2m3 || type == DataType::float6e3m2 ? 0x3F : 0xFF);
      for (std::size_t i = 0; i < t.bytes(); ++i) bytes[i] = static_cast<unsigned char>((i * 37 + 11) & mask);
    }
    for (const bool typed : {false, true}) {
      PbSource source;
      const NamedTensor back = decode_tensor(encode_tensor(t, "name", typed), source);
      EXPECT_EQ(back.name, "name");
      ASSERT_EQ(back.tensor.type_string(), t.type_string());
      if (type != DataType::string) {
        EXPECT_EQ(std::memcmp(back.tensor.data(), t.data(), t.bytes()), 0) << name(type) << typed;
      } else {
        EXPECT_EQ(back.tensor.values<std::string>()[4], "word");
      }
    }
  }
}

TEST(Writer, OutputsKeepTheirNames) {
  Model m = read(model(graph(relu_parts())));
  Graph& g = m.graph;
  Node abs;
  abs.op_type = "Abs";
  abs.version = 17;
  abs.inputs = {*g.find("y")};
  const ValueId z = g.add_value("z", Type::tensor(DataType::float32));
  abs.outputs = {z};
  g.add_node(abs);
  g.replace_uses(*g.find("y"), z);  // also the graph's output, which is still shown as y
  g.node(1).inputs = {*g.find("y")};
  g.add_output(*g.find("x"), "copy");
  const Model again = read(write_model(m));
  EXPECT_EQ(again.graph.output_names(), (std::vector<std::string>{"y", "copy"}));
  EXPECT_EQ(again.graph.node(again.graph.value(again.graph.outputs()[0]).producer).op_type, "Abs");
  EXPECT_EQ(again.graph.node(again.graph.value(again.graph.outputs()[1]).producer).op_type, "Identity");
}

TEST(Writer, OutputsThatAreListedTwice) {
  Model m = read(model(graph(relu_parts())));
  Graph& g = m.graph;
  g.add_output(g.outputs()[0], "y");
  expect_round_trip(m, "the value's own name");
  g.add_output(*g.find("x"), "copy");
  g.add_output(*g.find("x"), "copy");
  const Model again = read(write_model(m));
  EXPECT_EQ(again.graph.output_names(), (std::vector<std::string>{"y", "y", "copy", "copy"}));
  EXPECT_EQ(again.graph.nodes().size(), 2U);
  g.add_output(*g.find("x"), "y");
  EXPECT_THROW(write_model(m), Error);
}

TEST(Writer, InitializersOfOldModelsStayConstants) {
  GraphParts p = relu_parts();
  p.nodes = {node("Add", {"x", "w"}, {"y"})};
  p.inputs.push_back(value("w", 1, {2, 3}));
  p.initializers = {tensor("w", {2, 3}, 1, floats(6))};
  const Model m = read(model(graph(p), {3, {opset("", 7)}, {}}));
  EXPECT_EQ(read(write_model(m)).ir_version, 4);
  expect_round_trip(m, "IR 3");
}

TEST(Writer, ValuesInFiles) {
  Map map;
  map.keys = Tensor::of<std::string>({2}, {"a", "b"});
  map.values = Tensor::of<float>({2}, {1.0F, 2.0F});
  Sequence maps;
  maps.items = {Value(map), Value(map)};
  Sequence tensors;
  tensors.element_type = DataType::int32;
  tensors.items = {Tensor::of<std::int32_t>({2}, {1, 2}), Tensor::scalar<std::int32_t>(3)};
  PbSource source;
  const Value back = decode_value(encode_value(maps, PbKind::sequence, "m"), PbKind::sequence, source);
  EXPECT_EQ(back.sequence().items.at(1).map().keys.values<std::string>()[1], "b");
  EXPECT_EQ(back.sequence().items.at(1).map().values.values<float>()[1], 2.0F);
  const Value some = decode_value(encode_value(tensors, PbKind::optional, "o"), PbKind::optional, source);
  EXPECT_EQ(some.type_string(), "sequence(int32) of 2");
  EXPECT_TRUE(decode_value(encode_value(Value(), PbKind::optional, "o"), PbKind::optional, source).empty());
}

// --- external data -----------------------------------------------------------------------------------------------------

Model with_weights() {
  GraphParts p = relu_parts();
  p.nodes = {node("Add", {"x", "w"}, {"y"}), node("Neg", {"s"}, {"t"})};
  p.initializers = {tensor("w", {100, 30}, 1, floats(3000, 7)), tensor("s", {2}, 1, floats(2)),
                    tensor("v", {5001}, 27, std::string(3751, 'z'))};
  return read(model(graph(p)));
}

TEST(ExternalData, RoundTrip) {
  const TemporaryFolder folder;
  const Model m = with_weights();
  write_model(m, folder / "m.onnx", {.external_above = 1000, .external_name = ""});
  EXPECT_LT(fs::file_size(folder / "m.onnx"), 1000U);
  EXPECT_EQ(fs::file_size(folder / "m.onnx.data"), 12288U + 3751U);
  const std::uint64_t both = fs::file_size(folder / "m.onnx") + fs::file_size(folder / "m.onnx.data");
  EXPECT_EQ(write_model(m, folder / "m.onnx", {.external_above = 1000, .external_name = ""}), both);
  const WriteOptions dry{.external_above = 1000, .external_name = "", .dry_run = true};
  EXPECT_EQ(write_model(m, folder / "m.onnx", dry), both);
  EXPECT_EQ(write_model(m, folder / "n.onnx", {.external_name = "", .dry_run = true}), write_model(m).size());
  EXPECT_FALSE(fs::exists(folder / "n.onnx"));
  const Model again = read_model(folder / "m.onnx");
  EXPECT_EQ(again.graph.dump(), m.graph.dump());
  for (const char* name : {"w", "s", "v"}) {
    const Tensor& a = *m.graph.value(*m.graph.find(name)).constant;
    const Tensor& b = *again.graph.value(*again.graph.find(name)).constant;
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0) << name;
  }
  EXPECT_THROW(write_model(m, folder / "m.onnx", {.external_above = 1000, .external_name = "../m.data"}), Error);
}

std::string external_model(const std::vector<std::pair<std::string, std::string>>& entries) {
  GraphParts p = relu_parts();
  p.nodes = {node("Add", {"x", "w"}, {"y"})};
  p.initializers = {message([&](auto& w) {
    w.add_int64(1, 6);
    w.add_int32(2, 1);
    w.add_string(8, "w");
    for (const auto& [key, value] : entries) {
      w.add_message(13, message([&](auto& e) {
                      e.add_string(1, key);
                      e.add_string(2, value);
                    }));
    }
    w.add_enum(14, 1);
  })};
  return model(graph(p));
}

// A function whose body and whose attribute's default name external data.
std::string external_function(const std::string& location) {
  const std::string weights = message([&](auto& w) {
    w.add_int64(1, 6);
    w.add_int32(2, 1);
    w.add_message(13, message([&](auto& e) {
                    e.add_string(1, "location");
                    e.add_string(2, location);
                  }));
    w.add_enum(14, 1);
  });
  const auto attribute = [&](const std::string& name) {
    return message([&](auto& a) {
      a.add_string(1, name);
      a.add_message(5, weights);
      a.add_enum(20, 4);
    });
  };
  const FunctionParts f{
      "my",
      "F",
      {"a"},
      {"b"},
      {},
      {attribute("d")},
      {node("Constant", {}, {"v"}, {attribute("value")}), node("Constant", {}, {"w"}, {reference("value", "d", 4)}),
       node("Add", {"a", "v"}, {"s"}), node("Add", {"s", "w"}, {"b"})}};
  GraphParts p = relu_parts();
  p.nodes = {node("F", {"x"}, {"y"}, {}, "my")};
  return model(graph(p), {8, {opset("", 17), opset("my", 1)}, {function(f)}});
}

TEST(ExternalData, InFunctions) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "w.bin", floats(6, 7));
  write_file_atomically(folder / "m.onnx", external_function("w.bin"));
  Model m = read_model(folder / "m.onnx");
  inline_functions(m);
  ASSERT_EQ(m.graph.nodes().size(), 4U);
  EXPECT_EQ(m.graph.node(0).attributes.get_tensor("value").values<float>()[5], 7);
  EXPECT_EQ(m.graph.node(1).attributes.get_tensor("value").values<float>()[5], 7);
  EXPECT_EQ(external_names(folder / "m.onnx"), std::set<std::string>{"w.bin"});
  const std::string bytes = external_function("w.bin");
  const auto data = std::as_bytes(std::span<const char>(bytes));
  EXPECT_NO_THROW(read_model(data, nullptr, folder.path()));
  EXPECT_THROW(read_model(data, nullptr, {}), Error);
  const std::string escape = external_function("../w.bin");
  EXPECT_THROW(read_model(std::as_bytes(std::span<const char>(escape)), nullptr, folder.path()), Error);
}

std::string error_in(const fs::path& folder, const std::vector<std::pair<std::string, std::string>>& entries) {
  write_file_atomically(folder / "m.onnx", external_model(entries));
  return testing::error_text([&] { read_model(folder / "m.onnx"); });
}

TEST(ExternalData, StaysInTheModelsFolder) {
  const TemporaryFolder outside;
  const TemporaryFolder folder;
  write_file_atomically(outside / "secret", floats(6));
  write_file_atomically(folder / "w.bin", floats(12));
  fs::create_directory(folder / "sub");
  write_file_atomically(folder / "sub/w.bin", floats(6));
  fs::create_symlink(outside / "secret", folder / "link");
  fs::create_directory_symlink(outside.path(), folder / "dir");
  fs::create_symlink("w.bin", folder / "inner_link");
  const auto refused = [&](const std::vector<std::pair<std::string, std::string>>& entries, const std::string& part) {
    const std::string text = error_in(folder.path(), entries);
    EXPECT_NE(text.find(part), std::string::npos) << "got '" << text << "'";
  };
  EXPECT_EQ(error_in(folder.path(), {{"location", "w.bin"}}), "");
  EXPECT_EQ(error_in(folder.path(), {{"location", "w.bin"}, {"offset", "24"}, {"length", "24"}, {"checksum", "x"}}), "");
  EXPECT_EQ(error_in(folder.path(), {{"location", "./sub/w.bin"}}), "");
  EXPECT_EQ(error_in(folder.path(), {{"location", "sub\\w.bin"}}), "");
  EXPECT_EQ(error_in(folder.path(), {{"location", "inner_link"}}), "");
  for (const char* plain : {"./sub/../w.bin", "sub/../w.bin", "sub\\..\\w.bin", "sub//../sub/./w.bin", "not_there/../w.bin"}) {
    EXPECT_EQ(error_in(folder.path(), {{"location", plain}}), "") << plain;
    EXPECT_EQ(external_names(folder / "m.onnx").size(), 1U) << plain;
  }
  write_file_atomically(folder / "m.onnx", external_model({{"location", "./sub/../w.bin"}}));
  EXPECT_EQ(external_names(folder / "m.onnx"), std::set<std::string>{"w.bin"});
  write_file_atomically(folder / "m.onnx", external_model({{"location", "sub/../../w.bin"}}));
  EXPECT_THROW(external_names(folder / "m.onnx"), Error);
  refused({{"location", (outside / "secret").string()}}, "absolute");
  refused({{"location", "C:\\w.bin"}}, "absolute");
  refused({{"location", "../" + outside.path().filename().string() + "/secret"}}, "'..'");
  refused({{"location", "sub/../../w.bin"}}, "'..'");
  refused({{"location", "..\\w.bin"}}, "'..'");
  refused({{"location", "sub/.."}}, "not a regular file");
  refused({{"location", "link"}}, "outside the model's folder");
  refused({{"location", "dir/secret"}}, "outside the model's folder");
  fs::create_directories(folder / "a/b");
  fs::create_directory_symlink("a/b", folder / "inner_dir");
  write_file_atomically(folder / "a/w.bin", floats(6));
  refused({{"location", "inner_dir/../w.bin"}}, "symbolic link");
  refused({{"location", ""}}, "empty");
  refused({}, "empty");
  refused({{"location", std::string("w.bin\0x", 7)}}, "zero byte");
  refused({{"location", "sub"}}, "not a regular file");
  refused({{"location", "missing"}}, "cannot open");
  refused({{"location", "w.bin"}, {"offset", "32"}}, "the file has 48 bytes");
  refused({{"location", "w.bin"}, {"offset", "18446744073709551600"}}, "the file has 48 bytes");
  refused({{"location", "w.bin"}, {"offset", "99999999999999999999"}}, "decimal number");
  for (const char* number : {"", "-1", "+1", " 1", "1 ", "0x10", "1e3", "one"}) {
    refused({{"location", "w.bin"}, {"offset", number}}, "decimal number");
    refused({{"location", "w.bin"}, {"length", number}}, "decimal number");
  }
  refused({{"location", "w.bin"}, {"length", "20"}}, "length is 20");
  refused({{"location", "w.bin"}, {"location", "w.bin"}}, "given twice");
  EXPECT_THROW(read(external_model({{"location", "w.bin"}})), Error);
  EXPECT_NO_THROW(read(external_model({{"location", "w.bin"}}), folder.path()));
}

// Download caches keep a model and its data in one store and link to both.
TEST(ExternalData, ModelAndDataMayBeLinksIntoOneStore) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "blobs");
  fs::create_directory(folder / "snapshot");
  write_file_atomically(folder / "blobs/1", external_model({{"location", "w.bin"}}));
  write_file_atomically(folder / "blobs/2", floats(6));
  fs::create_symlink("../blobs/1", folder / "snapshot/m.onnx");
  fs::create_symlink("../blobs/2", folder / "snapshot/w.bin");
  EXPECT_NO_THROW(read_model(folder / "snapshot/m.onnx"));
}

// --- model files outside the repository --------------------------------------------------------------------------------

fs::path test_models() {
  const char* folder = std::getenv("SDX_TEST_MODELS");
  return folder != nullptr ? folder : "";
}

// A dump without _0, _1 and so on at the end of names.
std::string without_numbers(const std::string& dump) {
  std::string out;
  for (std::size_t i = 0; i < dump.size();) {
    std::size_t end = i + 1;
    while (dump[i] == '_' && end < dump.size() && dump[end] >= '0' && dump[end] <= '9') ++end;
    if (end > i + 1) {
      i = end;
    } else {
      out += dump[i++];
    }
  }
  return out;
}

TEST(Writer, RoundTripsModelFiles) {
  if (!fs::exists(test_models())) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test_models())) {
    if (!entry.is_regular_file() || entry.path().extension() != ".onnx" || entry.file_size() > (32 << 20)) continue;
    Model m;
    try {
      m = read_model(entry.path());
    } catch (const Error&) {
      continue;  // some are broken on purpose: see MalformedFiles
    }
    if (m.graph.dump().size() > (1 << 22)) continue;
    ++count;
    // Results in subgraphs are called otherwise where they hid names of the graphs around them: the first time at most.
    const Model once = read(write_model(m));
    EXPECT_EQ(without_numbers(once.graph.dump()), without_numbers(m.graph.dump())) << entry.path();
    expect_round_trip(once, entry.path().string());
  }
  EXPECT_GT(count, 100);
}

// The malformed files that reading itself must refuse; the others break rules of operators.
TEST(Reader, MalformedFiles) {
  const fs::path source = test_models() / "malformed";
  if (!fs::exists(source)) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
  const TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(source)) fs::copy(entry.path(), folder.path());
  fs::create_symlink("/etc/hostname", folder / "ext_symlink.bin");
  const std::vector<std::string> refused = split_list(
      "bitflip_09,bitflip_11,bitflip_13,bitflip_17,bitflip_23,dtype_undefined,dtype_unknown,ext_absolute,ext_directory,"
      "ext_empty_location,ext_length_mismatch,ext_missing_file,ext_offset_nan,ext_offset_overflow,ext_offset_past_eof,"
      "ext_symlink_escape,ext_traversal,function_recursive,groups_deep,nested_graph_3000,nested_if_90,"
      "ort_add_opset_314159,ort_corrupt-model,ort_icm-31000000518082,ort_test_arbitrary_external_file,raw_too_short,"
      "self_cycle,trunc_16,trunc_44234,zip_magic");
  const char* const accepted[] = {"bitflip_01", "bitflip_14", "bitflip_16", "bitflip_20", "ir_0", "nested_if_8", "unknown_op"};
  const auto error = [&](const std::string& name) -> std::string {
    try {
      Model m = read_model(folder / (name + ".onnx"));
      inline_functions(m);
      m.graph.verify();
    } catch (const Error& e) {
      EXPECT_NE(e.code(), ErrorCode::internal) << e.what();
      return e.what();
    }
    return "";
  };
  for (const std::string& name : refused) EXPECT_NE(error(name), "") << name;
  for (const char* name : accepted) EXPECT_EQ(error(name), "") << name;
  EXPECT_NE(error("ext_symlink_escape").find("outside the model's folder"), std::string::npos);
}

}  // namespace
}  // namespace sdx
