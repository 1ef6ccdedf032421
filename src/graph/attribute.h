#pragma once
// Attributes of a node, apart from subgraphs (see Subgraph in graph.h).

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"
#include "graph/type.h"

namespace sdx {

using AttributeValue = std::variant<std::int64_t, float, std::string, Tensor, std::vector<std::int64_t>, std::vector<float>,
                                    std::vector<std::string>, std::vector<Tensor>, Type, std::vector<Type>>;

// "int", "floats", "tensor", …: for messages and dumps.
std::string_view kind_name(const AttributeValue& value);

// A few named values, in the order of the file. The typed getters throw Error(invalid_model) when the attribute has another
// type; `get_*` without a default also when it is missing. ("int" is accepted where a float is asked for.)
class SDX_TOOLS_API Attributes {
 public:
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const AttributeValue* find(std::string_view name) const;
  void set(std::string name, AttributeValue value);
  void erase(std::string_view name);
  bool empty() const { return items_.empty(); }
  const std::vector<std::pair<std::string, AttributeValue>>& items() const { return items_; }

  std::int64_t get_int(std::string_view name) const;
  std::int64_t get_int(std::string_view name, std::int64_t otherwise) const;
  float get_float(std::string_view name) const;
  float get_float(std::string_view name, float otherwise) const;
  const std::string& get_string(std::string_view name) const;
  std::string get_string(std::string_view name, std::string_view otherwise) const;
  const Tensor& get_tensor(std::string_view name) const;
  // Empty when missing.
  std::vector<std::int64_t> get_ints(std::string_view name) const;
  std::vector<float> get_floats(std::string_view name) const;
  std::vector<std::string> get_strings(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, AttributeValue>> items_;
};

}  // namespace sdx
