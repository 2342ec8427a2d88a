// Fuzzes the safetensors reader.
#include "io/safetensors.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    return fuzz::run([&] { fuzz::touch(read_safetensors(fuzz::bytes(data, size), "fuzz")); });
}
