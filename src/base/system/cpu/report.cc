#include "base/system/cpu/report.h"

#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "base/system/cpu_features.h"

namespace sdx {
namespace {

constexpr const char* kLacks = "the processor lacks it";
constexpr const char* kNotBuilt = "this build has no code for it";
constexpr const char* kNotSaved = "the operating system does not enable its registers";

// Collects the answers. Each reason is the first that holds.
class Report {
 public:
  explicit Report(const CpuChoice& choice) : c_(choice) {
    if (!can_run(c_.isa)) c_.isa.clear();
  }

  std::vector<CpuInstructions> x86();
  std::vector<CpuInstructions> arm();

 private:
  struct Check {
    bool holds;
    std::string reason;
  };
  bool can_run(const std::string& set) const;
  bool add(const char* name, std::initializer_list<Check> against);
  // Whether SDX_CPU_ISA names a lesser set than `set`.
  Check limited(std::initializer_list<const char*> lesser) const;
  static Check off(const char* variable, const std::string& value, const char* word);

  CpuChoice c_;
  std::vector<CpuInstructions> all_;
};

bool Report::can_run(const std::string& set) const {
  const CpuBits& has = c_.has;
  if (set == "sse4") return has.sse4 && c_.built_sse4;
  return set == "scalar" || (set == "avx2" && has.sse4 && has.avx2 && has.saves_ymm && c_.built_avx2);  // avx512 limits nothing
}

bool Report::add(const char* name, std::initializer_list<Check> against) {
  std::string reason;
  for (const Check& check : against) {
    if (check.holds && reason.empty()) reason = check.reason;
  }
  all_.push_back({name, reason.empty(), reason});
  return reason.empty();
}

Report::Check Report::limited(std::initializer_list<const char*> lesser) const {
  for (const char* name : lesser) {
    if (c_.isa == name) return {true, "SDX_CPU_ISA=" + c_.isa};
  }
  return {false, ""};
}

Report::Check Report::off(const char* variable, const std::string& value, const char* word) {
  return {value == word, std::string(variable) + "=" + value};
}

std::vector<CpuInstructions> Report::x86() {
  const CpuBits& has = c_.has;
  const Check no_vnni = off("SDX_CPU_VNNI", c_.vnni, "0"), no_amx = off("SDX_CPU_AMX", c_.amx, "0");
  add("sse4", {{!has.sse4, kLacks}, {!c_.built_sse4, kNotBuilt}, limited({"scalar"})});
  const bool avx2 = add(
      "avx2",
      {{!has.sse4 || !has.avx2, kLacks}, {!c_.built_avx2, kNotBuilt}, {!has.saves_ymm, kNotSaved}, limited({"scalar", "sse4"})});
  const bool avx512 = add("avx512", {{!has.sse4 || !has.avx2 || !has.avx512, kLacks},
                                     {!c_.built_avx512, kNotBuilt},
                                     {!has.saves_ymm || !has.saves_zmm, kNotSaved},
                                     limited({"scalar", "sse4", "avx2"})});
  const bool vnni = add("vnni", {{!has.avx512_vnni && !has.avx_vnni, kLacks},
                                 no_vnni,
                                 {!avx2 && !avx512, has.avx_vnni ? "needs avx2" : "needs avx512"},
                                 {!avx512 && !has.avx_vnni, "needs avx512 on this processor"},
                                 {avx512 && !has.avx512_vnni, "the processor has it without avx512 only"}});
  add("bf16", {{!has.avx512_bf16, kLacks}, off("SDX_CPU_BF16", c_.bf16, "0"), {!avx512, "needs avx512"}});
  const bool amx = add("amx int8", {{!has.amx_int8, kLacks},
                                    no_amx,
                                    {!has.saves_tiles, kNotSaved},
                                    {!avx512, "needs avx512"},
                                    {!vnni, "needs vnni"},
                                    {!c_.tiles_granted, "the operating system refuses the tiles to this process"}});
  add("amx bf16", {{!has.amx_bf16, kLacks}, off("SDX_CPU_AMX", c_.amx, "int8"), no_amx, {!amx, "needs amx int8"}});
  return std::move(all_);
}

std::vector<CpuInstructions> Report::arm() {
  const CpuBits& has = c_.has;
  add("neon", {});
  const bool dots = add("dotprod", {{!has.neon_dots, kLacks}, off("SDX_CPU_VNNI", c_.vnni, "0")});
  add("i8mm", {{!has.neon_i8mm, kLacks}, off("SDX_CPU_I8MM", c_.i8mm, "0"), {!dots, "needs dotprod"}});
  add("bf16", {{!has.neon_bf16, kLacks}, off("SDX_CPU_BF16", c_.bf16, "0")});
  return std::move(all_);
}

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

CpuChoice this_choice() {
  CpuChoice choice;
  choice.has = cpu_bits();
  choice.built_sse4 = in_this_build(Isa::sse4);
  choice.built_avx2 = in_this_build(Isa::avx2);
  choice.built_avx512 = in_this_build(Isa::avx512);
  choice.tiles_granted = choice.has.amx_int8 && choice.has.saves_tiles && system_grants_tiles();
  choice.isa = variable("SDX_CPU_ISA");
  choice.vnni = variable("SDX_CPU_VNNI");
  choice.i8mm = variable("SDX_CPU_I8MM");
  choice.bf16 = variable("SDX_CPU_BF16");
  choice.amx = variable("SDX_CPU_AMX");
  return choice;
}

std::vector<CpuInstructions> explain_cpu(const CpuChoice& choice) {
  Report report(choice);
  return choice.has.neon ? report.arm() : report.x86();
}

}  // namespace sdx
