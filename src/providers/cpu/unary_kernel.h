#pragma once
// Functions of one float, element by element: as a kernel, `What` says which function.

#include <string_view>

#include "providers/interface/kernel.h"

namespace sdx::cpu {

template <class What, auto kCompute>
class UnaryF32 : public Kernel {
 public:
  UnaryF32(std::string_view name, What what) : name_(name), what_(what) {}
  std::string_view name() const override { return name_; }
  int in_place() const override { return 0; }
  void run(const KernelContext& c) const override { kCompute(what_, c.in<float>(0), c.out<float>(0), c.output(0).size()); }

 private:
  std::string_view name_;
  What what_;
};

}  // namespace sdx::cpu
