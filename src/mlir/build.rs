//! Builds the dialect (`dialect/CMakeLists.txt`) and links it and the shared MLIR, if the feature `mlir` is on.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "mlir")]
    dialect::build();
}

#[cfg(feature = "mlir")]
mod dialect {
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    /// Stops the build with what to do about it.
    fn stop(message: &str) -> ! {
        eprintln!(
            "error: {message}\n\
             sass2mlir's MLIR build needs LLVM and MLIR 22. On Debian and Ubuntu:\n\
             \x20   apt-get install llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools libclang-22-dev clang-22 libpolly-22-dev \\\n\
             \x20       zlib1g-dev libzstd-dev cmake ninja-build\n\
             or build without MLIR:\n\
             \x20   cargo build --no-default-features --features internal-ir"
        );
        std::process::exit(1);
    }

    pub fn build() {
        let prefix = PathBuf::from(env::var_os("MLIR_SYS_220_PREFIX").unwrap_or_else(|| "/usr/lib/llvm-22".into()));
        println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
        let config = prefix.join("lib/cmake/mlir");
        if !config.join("MLIRConfig.cmake").is_file() {
            stop(&format!(
                "there is no MLIR in {} (variable MLIR_SYS_220_PREFIX)",
                prefix.display()
            ));
        }
        let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
        let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_else(|| stop("cargo has set no OUT_DIR")));
        // One folder for all profiles: the C++ is always optimised, and `make mlir` goes on in it for sass-opt and the plugin.
        let place = out.ancestors().nth(4).unwrap_or(&out).join("dialect");
        let tool = |variable: &str, default: PathBuf| env::var_os(variable).map_or(default, PathBuf::from);
        let built = cmake::Config::new(root.join("dialect"))
            .generator("Ninja")
            .profile("Release")
            .out_dir(&place)
            .define("MLIR_DIR", &config)
            .define("CMAKE_CXX_COMPILER", tool("SASS_CXX", prefix.join("bin/clang++")))
            .define("CMAKE_C_COMPILER", tool("SASS_CC", prefix.join("bin/clang")))
            .build_target("SassDialect")
            .build();
        println!("cargo:rustc-link-search=native={}", built.join("build").display());
        println!("cargo:rustc-link-lib=static:-bundle=SassDialect");
        for part in ["include", "lib", "CMakeLists.txt"] {
            println!("cargo:rerun-if-changed={}", root.join("dialect").join(part).display());
        }
        println!("cargo:rerun-if-changed={}", root.join("src/engine/include").display());
        link_shared(&prefix, &out);
    }

    /// Debian's libMLIR.so lacks the C API, and there is no libMLIR-C.so: a linker script of that name stands for the static archives.
    fn link_shared(prefix: &Path, out: &Path) {
        let lib = prefix.join("lib");
        let entries = fs::read_dir(&lib).unwrap_or_else(|e| stop(&format!("{}: {e}", lib.display())));
        let is_capi = |name: &str| name.starts_with("libMLIRCAPI") && name.ends_with(".a");
        let mut archives: Vec<String> = entries
            .flatten()
            .filter(|e| e.file_name().to_str().is_some_and(is_capi))
            .map(|e| e.path().display().to_string())
            .collect();
        archives.sort();
        if archives.is_empty() {
            stop(&format!(
                "{} has no libMLIRCAPI*.a (package libmlir-22-dev)",
                lib.display()
            ));
        }
        let script = out.join("libMLIR-C.so");
        if let Err(e) = fs::write(&script, format!("INPUT({})\n", archives.join(" "))) {
            stop(&format!("{}: {e}", script.display()));
        }
        println!("cargo:rustc-link-search=native={}", out.display());
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    }
}
