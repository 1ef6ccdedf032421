#pragma once
// Operators that a vendor's library turned down in this process: the next model need not try them again.

#include <mutex>
#include <set>
#include <string>

#include "graph/graph.h"

namespace sdx {

// Indexed by the library's version and the operator's domain, name and version. Thread-safe.
class RefusedOperators {
 public:
  void add(const std::string& library_version, const Node& node) {
    const std::lock_guard lock(mutex_);
    keys_.insert(key(library_version, node));
  }
  bool contains(const std::string& library_version, const Node& node) const {
    const std::lock_guard lock(mutex_);
    return keys_.contains(key(library_version, node));
  }

 private:
  static std::string key(const std::string& library_version, const Node& node) {
    return library_version + " " + node.domain + ":" + node.op_type + ":" + std::to_string(node.version);
  }
  mutable std::mutex mutex_;
  std::set<std::string> keys_;
};

}  // namespace sdx
