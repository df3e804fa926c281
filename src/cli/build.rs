//! How the program is linked with MLIR, if the feature `mlir` is on.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "mlir")]
    {
        println!("cargo:rerun-if-env-changed=SASS_LLVM_DIR");
        let llvm = std::env::var("SASS_LLVM_DIR").unwrap_or_else(|_| "/usr/lib/llvm-22".into());
        println!("cargo:rustc-link-arg=-Wl,-rpath,{llvm}/lib");
        // Pass plugins find the dialect in the program.
        for symbols in [
            "_ZN4sass*",
            "_ZNK4sass*",
            "_ZTVN4sass*",
            "_ZTIN4sass*",
            "_ZN4mlir6detail14TypeIDResolverIN4sass*",
        ] {
            println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbols}");
        }
    }
}
