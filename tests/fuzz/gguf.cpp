// Fuzzes the GGUF reader and the decoding of the tensors that it returns.
#include "io/gguf/file.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    const std::string_view file = fuzz::text(data, size);
    return fuzz::run([&] {
        const test::MemorySource source(file);
        for (const GgufTensor& tensor : read_gguf(source, "fuzz").tensors) {
            const size_t elements = size_t(tensor.rows() * tensor.row_elements());
            if (tensor.data.size_bytes != checked_bytes(elements, tensor.type, tensor.name))
                std::abort();
            std::vector<std::byte> blocks(tensor.data.size_bytes);
            source.read(tensor.data.begin, blocks);
            std::vector<float> values(elements);
            decode(tensor.type, blocks, values, "fuzz");
        }
    });
}
