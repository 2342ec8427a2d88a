// Fuzzes the reader of tokenizer.json, and encodes and decodes with the files that it accepts.
#include "fuzz.h"
#include "text/bpe_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    return fuzz::run([&] {
        const BpeTokenizer tokenizer = BpeTokenizer::from_json(fuzz::text(data, size), "fuzz");
        const std::vector<int> ids = tokenizer.encode_whole(
            "a ab <x> \xC3\xA9\xFF\n e\xCC\x81 \xE2\x96\x81 <s></s><unk><0x0A> USER: 12it's   ");
        for (const int id : ids) {
            if (id < 0 || id >= tokenizer.size()) std::abort();
            tokenizer.bytes(id);
        }
        tokenizer.decode(ids, false);
        tokenizer.decode(ids, true);
    });
}
