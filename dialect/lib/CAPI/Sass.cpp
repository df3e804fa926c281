//===- Sass.cpp - the C API --------------------------------------------------------------------------------===//

#include "Sass-c/Sass.h"
#include "Sass/Kernel.h"
#include "Sass/Passes.h"

#include "llvm/Config/llvm-config.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Pass.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;
using namespace sass;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Sass, sass, ::sass::SassDialect)

void sassRegisterPasses() { registerSassPasses(); }

MlirOperation sassKernelToFunc(MlirModule module, const SassKernel *kernel, bool noLocations, SassLineAt lineAt, void *user) {
  auto ask = [&](uint64_t offset) -> std::optional<std::pair<StringRef, unsigned>> {
    SassStr file;
    uint32_t line;
    if (!lineAt(user, offset, &file, &line))
      return std::nullopt;
    return std::pair(StringRef(file.data, file.size), line);
  };
  return wrap(makeFunc(unwrap(module), *kernel, !noLocations, lineAt ? LineAt(ask) : LineAt()).getOperation());
}

bool sassFuncToKernel(MlirOperation op, void (*out)(void *user, const SassKernel *kernel), void *user) {
  auto func = dyn_cast<FuncOp>(unwrap(op));
  if (!func)
    return unwrap(op)->emitOpError("is no sass.func"), false;
  KernelArrays arrays(func);
  if (failed(arrays.fill()))
    return false;
  SassKernel kernel = arrays.view();
  out(user, &kernel);
  return true;
}

namespace {
/// Hands text on in large pieces.
class SinkStream : public raw_ostream {
public:
  SinkStream(SassSink sink, void *user) : sink(sink), user(user) { SetBufferSize(1 << 16); }
  ~SinkStream() override { flush(); }

private:
  void write_impl(const char *data, size_t size) override {
    sink(user, data, size);
    passed += size;
  }
  uint64_t current_pos() const override { return passed; }

  SassSink sink;
  void *user;
  uint64_t passed = 0;
};
} // namespace

void sassPrint(MlirModule module, SassSink sink, void *user) {
  SinkStream stream(sink, user);
  unwrap(module)->print(stream, OpPrintingFlags().assumeVerified());
}

void sassForEachFunc(MlirModule module, void (*each)(void *user, MlirOperation func), void *user) {
  for (FuncOp func : unwrap(module).getOps<FuncOp>())
    each(user, wrap(func.getOperation()));
}

void sassOnPassRun(MlirContext context, SassPassListener listener, void *user) {
  auto *dialect = unwrap(context)->getOrLoadDialect<SassDialect>();
  if (!listener)
    return dialect->setPassListener({});
  dialect->setPassListener([=](FuncOp func, SassPassRun *run) { listener(user, wrap(func.getSymName()), run); });
}

bool sassApplyPassRun(MlirOperation func, SassPassRun *run) { return succeeded(applyPassRun(cast<FuncOp>(unwrap(func)), run)); }

void sassSetPipelineOptions(MlirPassManager manager, const SassPipelineOptions *options) {
  PassManager &pm = *unwrap(manager);
  if (options->timing)
    pm.enableTiming();
  if (options->printAfterAll)
    pm.enableIRPrinting(/*before=*/nullptr, /*after=*/[](Pass *, Operation *) { return true; }, /*printModuleScope=*/false,
                        /*printAfterOnlyOnChange=*/true);
  if (options->reproducer.length)
    pm.enableCrashReproducerGeneration(unwrap(options->reproducer));
}

bool sassHasPass(MlirStringRef name) { return PassInfo::lookup(unwrap(name)) != nullptr; }

bool sassCheckPasses(MlirStringRef passes, SassSink error, void *user) {
  OpPassManager manager(FuncOp::getOperationName());
  std::string message;
  llvm::raw_string_ostream os(message);
  if (succeeded(parsePassPipeline(unwrap(passes), manager, os)))
    return true;
  StringRef text = StringRef(message).trim();
  error(user, text.data(), text.size());
  return false;
}

void sassLlvmVersion(unsigned version[3]) {
  version[0] = LLVM_VERSION_MAJOR;
  version[1] = LLVM_VERSION_MINOR;
  version[2] = LLVM_VERSION_PATCH;
}

bool sassLoadPassPlugin(MlirStringRef path, SassSink error, void *user) {
  auto plugin = PassPlugin::load(unwrap(path).str());
  if (!plugin) {
    std::string message = llvm::toString(plugin.takeError());
    error(user, message.data(), message.size());
    return false;
  }
  plugin->registerPassRegistryCallbacks();
  return true;
}
