//===- plugin.cpp - for mlir-opt --load-dialect-plugin and --load-pass-plugin -----------------------------===//

#include "Sass/Passes.h"

#include "llvm/Config/llvm-config.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

static void installEngine() {
  if (!sass::getEngine())
    sassSetEngine(sassEngineTable());
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "sass", LLVM_VERSION_STRING, [](mlir::DialectRegistry *registry) {
            installEngine();
            registry->insert<sass::SassDialect>();
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "sass", LLVM_VERSION_STRING, [] {
            installEngine();
            sass::registerSassPasses();
          }};
}
