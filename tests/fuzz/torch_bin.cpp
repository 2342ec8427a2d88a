// Fuzzes the zip reader and, inside it, the pickle reader.
#include "io/torch/torch_bin.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    const std::string_view file = fuzz::text(data, size);
    return fuzz::run([&] { fuzz::touch(file, read_torch_bin(test::MemorySource(file), "fuzz")); });
}
