// Quantises floats with llama.cpp's own code and gives them back as its CPU side reads them:
//
//   q4_k N < N floats > the blocks of q4_K, then N floats
//
// Built by the checks from the sources that corpora.sh brings: cc -I ggml/include -I ggml/src q4_k.c ggml/src/ggml-quants.c -lm
// SPDX-License-Identifier: CC0-1.0
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ggml.h"
#include "ggml-quants.h"

// What ggml-quants.c needs of the rest of the library.
void ggml_abort(const char *file, int line, const char *format, ...) {
    fprintf(stderr, "%s:%d: %s\n", file, line, format);
    exit(3);
}
void ggml_critical_section_start(void) {}
void ggml_critical_section_end(void) {}
float ggml_table_f32_f16[1 << 16];
size_t ggml_row_size(enum ggml_type type, int64_t n) { return type == GGML_TYPE_Q4_K ? (size_t)n / 256 * 144 : 0; }
size_t ggml_type_size(enum ggml_type type) { return type == GGML_TYPE_Q4_K ? 144 : 0; }
int64_t ggml_blck_size(enum ggml_type type) { return type == GGML_TYPE_Q4_K ? 256 : 1; }
const char *ggml_type_name(enum ggml_type type) { (void)type; return ""; }
void ggml_log_internal(enum ggml_log_level level, const char *format, ...) { (void)level, (void)format; }

int main(int argc, char **argv) {
    int64_t n = argc > 1 ? atoll(argv[1]) : 0;
    if (n <= 0 || n % 256) return 2;
    float *x = malloc(n * sizeof *x);
    void *blocks = malloc(n / 256 * 144);
    if (fread(x, sizeof *x, n, stdin) != (size_t)n) return 4;
    quantize_row_q4_K_ref(x, blocks, n);
    dequantize_row_q4_K(blocks, x, n);
    fwrite(blocks, 144, n / 256, stdout);
    fwrite(x, sizeof *x, n, stdout);
    return 0;
}
