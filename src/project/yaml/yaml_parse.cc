// Builds our own tree from YAML events. yaml-cpp's node type is not used: it takes the last of duplicate keys, shares aliases (so
// that a walk over the tree visits a "billion laughs" file in full), and keeps no limits.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/utf8.h"
#include "project/yaml/yaml_events.h"
#include "project/yaml/yaml_node.h"

extern "C" {
// Null where nothing that was linked defines it.
__attribute__((weak)) const sdx::ModuleHead* sdx_yaml_module();
}

namespace sdx {
namespace {

const YamlModule& yaml_module() {
  if (sdx_yaml_module != nullptr) return reinterpret_cast<const YamlModule&>(*sdx_yaml_module());
  return load_module<YamlModule>();
}

struct Place {
  int line = 1, column = 1;
};

class TreeBuilder {
 public:
  TreeBuilder(const std::string& name, const YamlLimits& limits) : name_(name), limits_(limits) {}

  YamlNode result() { return std::move(root_); }

  void take(const YamlEvent& e) {
    where_ = {e.line, e.column};
    const std::string_view tag(e.tag, e.tag_size);
    switch (e.kind) {
      case YamlEventKind::document_start:
        if (++documents_ > 1) stop(where_, "the file holds more than one document");
        break;
      case YamlEventKind::null: add(make(YamlKind::null), e.anchor); break;
      case YamlEventKind::alias: alias(e.anchor); break;
      case YamlEventKind::scalar: scalar(tag, e.anchor, std::string(e.text, e.text_size)); break;
      case YamlEventKind::list_start:
        check_tag(tag, {"seq"});
        open(make(YamlKind::list), e.anchor);
        break;
      case YamlEventKind::map_start:
        check_tag(tag, {"map"});
        open(make(YamlKind::map), e.anchor);
        break;
      case YamlEventKind::list_end: close(); break;
      case YamlEventKind::map_end:
        merge(frames_.back().node);
        close();
        break;
    }
  }

 private:
  void alias(std::size_t anchor) {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) stop(where_, "an alias inside its own anchor");
    count(it->second.size, where_);
    if (depth() + it->second.depth > limits_.depth) too_deep(where_);
    add(it->second.node, 0);
  }

  void scalar(std::string_view tag, std::size_t anchor, std::string value) {
    YamlNode node = make(YamlKind::scalar);
    node.text = std::move(value);
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    check_tag(tag, {"str", "int", "float", "bool", "null"});
    if (tag == "tag:yaml.org,2002:null") node.kind = YamlKind::null;
    add(std::move(node), anchor);
  }

  struct Frame {
    YamlNode node;
    std::size_t anchor = 0;
    std::size_t first_node = 0;  // nodes_ when it was opened
    int deepest = 0;             // levels below it
    bool has_key = false;
    YamlNode key;
  };
  struct Anchored {
    YamlNode node;
    std::size_t size = 1;
    int depth = 0;
  };

  [[noreturn]] void stop(Place place, std::string_view message) const {
    fail(ErrorCode::invalid_argument, "{}:{}:{}: {}", name_, place.line, place.column, message);
  }
  [[noreturn]] void too_deep(Place place) const { stop(place, fmt::format("nested more than {} levels deep", limits_.depth)); }
  static Place place(const YamlNode& node) { return {node.line, node.column}; }
  int depth() const { return static_cast<int>(frames_.size()); }

  void count(std::size_t more, Place where) {
    nodes_ += more;
    if (nodes_ > limits_.nodes) stop(where, fmt::format("more than {} values, aliases expanded", limits_.nodes));
  }

  YamlNode make(YamlKind kind) {
    count(1, where_);
    YamlNode node;
    node.kind = kind;
    node.line = where_.line;
    node.column = where_.column;
    return node;
  }

  void check_tag(std::string_view tag, std::initializer_list<std::string_view> known) const {
    constexpr std::string_view kYaml = "tag:yaml.org,2002:";
    if (tag.empty() || tag == "?" || tag == "!") return;
    for (const std::string_view k : known) {
      if (tag.starts_with(kYaml) && tag.substr(kYaml.size()) == k) return;
    }
    stop(where_, fmt::format("the tag '{}' has no meaning here", tag));
  }

  void open(YamlNode node, std::size_t anchor) {
    if (depth() >= limits_.depth) too_deep(place(node));
    frames_.push_back({std::move(node), anchor, nodes_, 0, false, {}});
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    const int below = frame.deepest + 1;
    if (frame.anchor != 0) {
      // The copy counts: anchors inside anchors would otherwise multiply memory by their depth.
      const std::size_t size = nodes_ - frame.first_node + 1;
      count(size, place(frame.node));
      anchors_[frame.anchor] = {frame.node, size, below};
    }
    if (!frames_.empty()) frames_.back().deepest = std::max(frames_.back().deepest, below);
    add(std::move(frame.node), 0);
  }

  void add(YamlNode node, std::size_t anchor) {
    if (anchor != 0) anchors_[anchor] = {node, 1, 0};
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == YamlKind::list) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      if (node.kind == YamlKind::null) node.text = "null", node.kind = YamlKind::scalar;
      if (node.kind != YamlKind::scalar) stop(place(node), "a key must be a word, found a list or map");
      frame.key = std::move(node);
      frame.has_key = true;
    } else {
      frame.has_key = false;
      add_entry(frame, std::move(node));
    }
  }

  void add_entry(Frame& frame, YamlNode value) {
    const auto [it, fresh] = keys_of(frame).emplace(frame.key.text, place(frame.key));
    if (!fresh) {
      stop(place(frame.key), fmt::format("the key '{}' occurs twice; first in line {}", frame.key.text, it->second.line));
    }
    frame.node.entries.push_back({std::move(frame.key.text), frame.key.line, frame.key.column, std::move(value)});
  }

  // Keys of the open maps, by depth: a linear search for each key would make a map of 100,000 keys take minutes.
  std::map<std::string, Place>& keys_of(const Frame& frame) {
    keys_.resize(frames_.size());
    if (frame.node.entries.empty()) keys_.back().clear();
    return keys_.back();
  }

  // "<<: *defaults" and "<<: [*a, *b]": keys that the map lacks are taken from these, the first one first.
  void merge(YamlNode& map) {
    for (std::size_t i = 0; i < map.entries.size(); ++i) {
      if (map.entries[i].key != "<<") continue;
      const YamlNode from = std::move(map.entries[i].value);
      map.entries.erase(map.entries.begin() + static_cast<std::ptrdiff_t>(i));
      if (from.kind == YamlKind::map) merge_one(map, from);
      for (const YamlNode& item : from.items) merge_one(map, item);
      if (from.kind != YamlKind::map && from.kind != YamlKind::list) stop(place(from), "'<<' takes a map or a list of maps");
      return;
    }
  }

  void merge_one(YamlNode& map, const YamlNode& from) {
    if (from.kind != YamlKind::map) stop(place(from), "'<<' takes a map or a list of maps");
    std::map<std::string, Place>& keys = keys_of(frames_.back());
    for (const YamlEntry& e : from.entries) {
      if (keys.emplace(e.key, Place{e.line, e.column}).second) map.entries.push_back(e);
    }
  }

  const std::string& name_;
  const YamlLimits& limits_;
  Place where_;  // of the event at hand
  YamlNode root_;
  std::vector<Frame> frames_;
  std::vector<std::map<std::string, Place>> keys_;
  std::map<std::size_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

// The state of the C callback.
struct Context : CallbackError {
  explicit Context(TreeBuilder& b) : builder(b) {}
  TreeBuilder& builder;
};

bool on_event(void* raw, const YamlEvent* event) {
  auto& context = *static_cast<Context*>(raw);
  return context.guarded([&] { context.builder.take(*event); });
}

// yaml-cpp takes byte 4 for the end of the file, guesses UTF-16 from zero bytes and lets bad UTF-8 pass.
void check_text(std::string_view text, const std::string& name) {
  Place where;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = decode_utf8(text, at);
    const bool bad = bytes == 0 || (code < 0x20 && code != '\t' && code != '\n' && code != '\r') || code == 0x7F;
    if (bad) {
      fail(ErrorCode::invalid_argument, "{}:{}:{}: not a text file: {}", name, where.line, where.column,
           bytes > 0 ? fmt::format("control character {}", static_cast<std::uint32_t>(code)) : "bytes that are not UTF-8");
    }
    where.column = code == '\n' ? 1 : where.column + 1;
    where.line += code == '\n' ? 1 : 0;
    at += bytes;
  }
}

// The parser's words for tabs speak of other things. The line that it stumbled over or the one before, where one begins with a
// tab; 0: neither does.
int tab_line(std::string_view text, int line) {
  int number = 1, found = 0;
  for (std::size_t at = 0; at < text.size() && number <= line; ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view words = text.substr(at, end - at);
    const std::size_t first = words.find_first_not_of(" \t");
    if (number + 1 >= line && first != std::string_view::npos && words.substr(0, first).find('\t') != std::string_view::npos)
      found = number;
    at = end + 1;
  }
  return found;
}

}  // namespace

YamlDocument::YamlDocument() = default;
YamlDocument::~YamlDocument() = default;
YamlDocument::YamlDocument(YamlDocument&&) noexcept = default;
YamlDocument& YamlDocument::operator=(YamlDocument&&) noexcept = default;

YamlDocument YamlDocument::parse(std::string_view text, std::string name, const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    sdx::fail(ErrorCode::invalid_argument, "{}: {} bytes, at most {} are read", name, text.size(), limits.bytes);
  }
  check_text(text, name);
  YamlDocument document;
  document.name_ = std::make_unique<std::string>(std::move(name));
  TreeBuilder builder(*document.name_, limits);
  Context context(builder);
  YamlEventRequest request{text.data(), text.size(), &context, &on_event, 1, 1, {}};
  const YamlOutcome outcome = yaml_module().events(&request);
  context.rethrow();
  if (outcome != YamlOutcome::ok) {
    if (const int line = tab_line(text, request.line); line > 0) {
      sdx::fail(ErrorCode::invalid_argument, "{}:{}:1: indented with a tab; use spaces", *document.name_, line);
    }
    sdx::fail(ErrorCode::invalid_argument, "{}:{}:{}: not valid YAML: {}", *document.name_, request.line, request.column,
              std::string(request.message));
  }
  document.root_ = std::make_unique<YamlNode>(builder.result());
  return document;
}

YamlDocument YamlDocument::read(const std::filesystem::path& path, const YamlLimits& limits) {
  return parse(read_file(path, limits.bytes), path.string(), limits);
}

YamlValue YamlDocument::root() const { return {root_.get(), name_.get(), ""}; }

}  // namespace sdx
