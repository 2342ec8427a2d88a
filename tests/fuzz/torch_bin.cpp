// Fuzzes the zip reader and, inside it, the pickle reader.
#include "io/torch_bin.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    return fuzz::run([&] { fuzz::touch(read_torch_bin(fuzz::bytes(data, size), "fuzz")); });
}
