//===- ToNvgpuReport.cpp - tensor-core and asynchronous-copy instructions in terms of nvgpu and nvvm -----------===//

#include "Sass/Passes.h"

#include "llvm/ADT/StringSwitch.h"

namespace sass {
#define GEN_PASS_DEF_SASSTONVGPUREPORT
#include "Sass/Passes.h.inc"
} // namespace sass

using namespace mlir;
using namespace sass;

namespace {

/// "16816" is m16n8k16, "1688" m16n8k8, "884" m8n8k4, "16832" m16n8k32, "8816" m8n8k16.
std::string mmaShape(StringRef digits) {
  return llvm::StringSwitch<std::string>(digits)
      .Case("884", "8, 8, 4")
      .Case("1684", "16, 8, 4")
      .Case("1688", "16, 8, 8")
      .Case("8816", "8, 8, 16")
      .Case("8832", "8, 8, 32")
      .Case("88128", "8, 8, 128")
      .Case("16816", "16, 8, 16")
      .Case("16832", "16, 8, 32")
      .Case("16864", "16, 8, 64")
      .Case("168128", "16, 8, 128")
      .Case("168256", "16, 8, 256")
      .Default("");
}

/// The same thing in other dialects; empty if there is none.
std::string sameAs(SassInst inst) {
  SmallVector<StringRef> parts;
  inst.getFullName().split(parts, '.');
  auto has = [&](StringRef modifier) { return inst.hasModifier(modifier); };
  StringRef mnemonic = inst.getMnemonic();
  if (mnemonic == "HMMA" || mnemonic == "IMMA" || mnemonic == "DMMA" || mnemonic == "BMMA") {
    std::string shape;
    for (StringRef part : ArrayRef(parts).drop_front())
      if (shape.empty())
        shape = mmaShape(part);
    return has("SP") ? "nvgpu.mma.sp.sync" + (shape.empty() ? "" : " with mmaShape [" + shape + "]")
                     : "nvgpu.mma.sync" + (shape.empty() ? "" : " with mmaShape [" + shape + "]");
  }
  if (mnemonic == "LDSM") {
    StringRef count = has("4") ? "4" : has("2") ? "2" : "1";
    return ("nvgpu.ldmatrix with numTiles = " + count + (has("MT88") ? ", transpose = true" : ", transpose = false")).str();
  }
  if (mnemonic == "LDGSTS")
    return std::string("nvgpu.device_async_copy") + (has("BYPASS") ? " with bypassL1" : "");
  return llvm::StringSwitch<std::string>(mnemonic)
      .Case("LDGDEPBAR", "nvgpu.device_async_create_group")
      .Case("ARRIVES", "nvvm.cp.async.mbarrier.arrive.shared")
      .Case("MOVM", "nvvm.movmatrix")
      .Case("REDUX", "nvvm.redux.sync")
      .Case("SHFL", "nvvm.shfl.sync")
      .Case("WARPSYNC", "nvvm.bar.warp.sync")
      .Default("");
}

struct ToNvgpuReport : sass::impl::SassToNvgpuReportBase<ToNvgpuReport> {
  void runOnOperation() override {
    // A group of asynchronous copies ends with LDGDEPBAR; DEPBAR.LE SB0 waits for it.
    unsigned copies = 0, groups = 0, products = 0, tiles = 0;
    getOperation().walk([&](SassInst inst) {
      StringRef mnemonic = inst.getMnemonic();
      std::string same = sameAs(inst);
      copies += mnemonic == "LDGSTS";
      products += mnemonic.ends_with("MMA");
      tiles += mnemonic == "LDSM";
      if (mnemonic == "DEPBAR" && groups && inst.hasModifier("LE"))
        same = "nvgpu.device_async_wait";
      if (mnemonic == "LDGDEPBAR") {
        ++groups;
        same += " for " + std::to_string(copies) + (copies == 1 ? " copy" : " copies");
        copies = 0;
      }
      if (!same.empty())
        inst->emitRemark() << mnemonic << " is " << same;
    });
    if (products || tiles || groups)
      getOperation().emitRemark() << products << " matrix products, " << tiles << " tile loads, " << groups
                                  << " groups of asynchronous copies";
    markAllAnalysesPreserved();
  }
};

} // namespace
