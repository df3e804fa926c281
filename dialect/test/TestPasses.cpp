//===- TestPasses.cpp - the passes of this folder, as a plugin ----------------------------------------------===//

#include "llvm/Config/llvm-config.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

namespace sass {
void registerTestInst();
void registerTestUniformity();
} // namespace sass

extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "sass-test-passes", LLVM_VERSION_STRING, [] {
            sass::registerTestInst();
            sass::registerTestUniformity();
          }};
}
