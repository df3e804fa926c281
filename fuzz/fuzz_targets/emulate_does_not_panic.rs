#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sass2mlir_fuzz::emulate(data));
