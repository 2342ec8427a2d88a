// Fuzzes the reader of SentencePiece models, and encodes and decodes with the models that it
// accepts.
#include "text/tokenizer.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    return fuzz::run([&] {
        const Tokenizer tokenizer = Tokenizer::from_bytes(fuzz::text(data, size), "fuzz");
        const std::vector<int> ids =
            tokenizer.encode("a aa <x> \xC3\xA9\xFF\n \xE2\x96\x81 <s></s><unk><0x0A> USER: 12");
        for (const int id : ids) {
            if (id < 0 || id >= tokenizer.size()) std::abort();
        }
        tokenizer.decode(ids);
    });
}
