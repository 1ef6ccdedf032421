#pragma once
// The tree behind YamlValue.

#include <string>
#include <vector>

#include "project/yaml/yaml.h"

namespace sdx {

struct YamlEntry;

struct YamlNode {
  YamlKind kind = YamlKind::null;
  bool quoted = false;  // a scalar that is text whatever it looks like
  int line = 1, column = 1;
  std::string text;                // scalar
  std::vector<YamlNode> items;     // list
  std::vector<YamlEntry> entries;  // map
};

struct YamlEntry {
  std::string key;
  int line = 1, column = 1;  // of the key
  YamlNode value;
};

}  // namespace sdx
