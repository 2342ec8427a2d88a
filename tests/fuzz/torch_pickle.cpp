// Fuzzes the pickle reader alone, with two storages to refer to.
#include <memory>

#include "fuzz.h"
#include "io/torch_bin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    constexpr size_t kStorageBytes = 16;
    // On the heap, where the sanitizer guards both ends.
    static const auto storage = std::make_unique<std::byte[]>(kStorageBytes);
    const std::vector<TorchStorage> storages = {{"0", {storage.get(), kStorageBytes}}, {"1", {}}};
    return fuzz::run(
        [&] { fuzz::touch(read_torch_pickle(fuzz::bytes(data, size), storages, "fuzz")); });
}
