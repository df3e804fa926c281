# FileCheck tests of the dialect. Run by tests/scripts/lit.sh, which sets the variables below.
import os

import lit.formats

config.name = "sass"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.environ["SASS_LIT_OUT"]

llvm = os.environ.get("SASS_LLVM_DIR", "/usr/lib/llvm-22")
tools = os.environ["SASS_TOOLS"]
config.environment["PATH"] = os.pathsep.join([os.path.join(llvm, "bin"), tools, config.environment["PATH"]])
config.substitutions += [
    ("%kernels", os.path.join(config.test_source_root, "..", "tests", "kernels")),
    ("%tools", tools),
    ("%llvm-config", os.path.join(config.test_source_root, "..", "dialect", "llvm", "bin", "llvm-config")),
    ("%plugin", os.path.join(tools, "libSassDialectPlugin.so")),
    ("%mlir-opt", "mlir-opt --load-dialect-plugin=%s --load-pass-plugin=%s" % ((os.path.join(tools, "libSassDialectPlugin.so"),) * 2)),
]
