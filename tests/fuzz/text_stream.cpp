// Fuzzes the streaming decoder: the first half of the bytes are tokens, the second half are stop
// strings. The output must be UTF-8 and a prefix of the text that all tokens decode to.
#include "text/stream.h"

#include "core/utf8.h"
#include "fuzz.h"
#include "text/write_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    constexpr int kFirstByteToken = 3;
    static const Tokenizer tokenizer =
        Tokenizer::from_bytes(test::ModelWriter{.pieces = {{"ab", -1}}}.file(), "fuzz");
    std::vector<std::string> stops(1);
    for (size_t i = size / 2; i < size; ++i) {
        if (data[i] == 0)
            stops.emplace_back();
        else
            stops.back() += char(data[i]);
    }
    TextStream stream(tokenizer, stops);
    std::vector<int> ids;
    std::string text;
    for (size_t i = 0; i < size / 2 && !stream.stopped(); ++i) {
        ids.push_back(kFirstByteToken + data[i]);
        text += stream.push(ids.back());
        if (!is_utf8(text)) std::abort();
    }
    if (!stream.stopped()) text += stream.finish();
    const std::string all = tokenizer.decode(ids);
    if (!is_utf8(text) || !(stream.stopped() ? all.starts_with(text) : all == text)) std::abort();
    return 0;
}
