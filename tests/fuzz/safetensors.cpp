// Fuzzes the safetensors reader.
#include "io/safetensors.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    const std::string_view file = fuzz::text(data, size);
    return fuzz::run(
        [&] { fuzz::touch(file, read_safetensors(test::MemorySource(file), "fuzz")); });
}
