# FileCheck tests of the dialect. Run by `make check-mlir`, which sets the variables below.
import os

import lit.formats

config.name = "sass"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.environ["SASS_LIT_OUT"]

llvm = os.environ.get("MLIR_SYS_220_PREFIX", "/usr/lib/llvm-22")
tools = os.environ["SASS_TOOLS"]
config.environment["PATH"] = os.pathsep.join([os.path.join(llvm, "bin"), tools, os.environ["SASS_PROGRAM_DIR"], config.environment["PATH"]])
config.substitutions += [
    ("%kernels", os.path.join(config.test_source_root, "..", "tests", "kernels")),
    ("%tools", tools),
    ("%plugin", os.path.join(tools, "libSassDialectPlugin.so")),
    ("%mlir-opt", "mlir-opt --load-dialect-plugin=%s --load-pass-plugin=%s" % ((os.path.join(tools, "libSassDialectPlugin.so"),) * 2)),
]
