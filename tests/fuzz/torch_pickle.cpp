// Fuzzes the pickle reader alone, with two storages that the pickle can refer to.
#include "fuzz.h"
#include "io/torch/torch_bin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    static const std::string file(16, 'x');
    const std::vector<TorchStorage> storages = {{"0", {{0, file.size()}}}, {"1", {}}};
    return fuzz::run(
        [&] { fuzz::touch(file, read_torch_pickle(fuzz::text(data, size), storages, "fuzz")); });
}
