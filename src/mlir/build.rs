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

    use tblgen::TableGenParser;

    fn stop(message: &str) -> ! {
        eprintln!("error: {message}");
        std::process::exit(1);
    }

    /// LLVM 22; dialect/llvm/bin/llvm-config has seen to it that it is there.
    fn prefix() -> PathBuf {
        println!("cargo:rerun-if-env-changed=SASS_LLVM_DIR");
        env::var_os("SASS_LLVM_DIR").map_or_else(|| "/usr/lib/llvm-22".into(), PathBuf::from)
    }

    /// Clippy links nothing and goes without the C++, which takes minutes.
    fn is_clippy() -> bool {
        println!("cargo:rerun-if-env-changed=RUSTC_WORKSPACE_WRAPPER");
        env::var_os("RUSTC_WORKSPACE_WRAPPER").is_some_and(|w| Path::new(&w).ends_with("clippy-driver"))
    }

    pub fn build() {
        let prefix = prefix();
        let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
        let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_else(|| stop("cargo has set no OUT_DIR")));
        for part in ["include", "lib", "CMakeLists.txt"] {
            println!("cargo:rerun-if-changed={}", root.join("dialect").join(part).display());
        }
        println!("cargo:rerun-if-changed={}", root.join("src/engine/include").display());
        let include = root.join("dialect/include");
        // For melior's `dialect!`.
        println!("cargo:rustc-env=SASS_DIALECT_INCLUDE={}", include.display());
        list_passes(&prefix, &include, &out);
        if !is_clippy() {
            compile(&prefix, &root, &out);
            link_shared(&prefix, &out);
        }
    }

    fn compile(prefix: &Path, root: &Path, out: &Path) {
        // One folder for all profiles: the C++ is always optimised, and tests/scripts/tools.sh goes on in it for sass-opt and the plugin.
        let place = out.ancestors().nth(4).unwrap_or(out).join("dialect");
        let tool = |variable: &str, default: PathBuf| env::var_os(variable).map_or(default, PathBuf::from);
        let built = cmake::Config::new(root.join("dialect"))
            .generator("Ninja")
            .profile("Release")
            .out_dir(&place)
            .define("MLIR_DIR", prefix.join("lib/cmake/mlir"))
            .define("CMAKE_CXX_COMPILER", tool("SASS_CXX", prefix.join("bin/clang++")))
            .define("CMAKE_C_COMPILER", tool("SASS_CC", prefix.join("bin/clang")))
            .build_target("SassDialect")
            .build();
        println!("cargo:rustc-link-search=native={}", built.join("build").display());
        println!("cargo:rustc-link-lib=static:-bundle=SassDialect");
    }

    /// Writes the portable passes of Passes.td with their options, for the check that the engine has the same.
    fn list_passes(prefix: &Path, include: &Path, out: &Path) {
        let keeper = TableGenParser::new()
            .add_source_file(&include.join("Sass/Passes.td").display().to_string())
            .add_include_directory(&include.display().to_string())
            .add_include_directory(&prefix.join("include").display().to_string())
            .parse()
            .unwrap_or_else(|e| stop(&format!("Passes.td: {e}")));
        let mut text = String::from("&[\n");
        for pass in keeper.all_derived_definitions("Sass_PortablePass") {
            let argument = pass
                .str_value("argument")
                .unwrap_or_else(|e| stop(&format!("Passes.td: {e}")));
            let options = pass
                .list_of_defs_value("options")
                .unwrap_or_else(|e| stop(&format!("Passes.td: {e}")));
            let options: Vec<&str> = options.iter().filter_map(|o| o.str_value("argument").ok()).collect();
            text += &format!("    ({argument:?}, &{options:?}),\n");
        }
        text += "]\n";
        let file = out.join("passes_td.rs");
        fs::write(&file, text).unwrap_or_else(|e| stop(&format!("{}: {e}", file.display())));
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
