// Streaming decode. Bytes pass two gates: they are held back until they are whole UTF-8 characters,
// and until they cannot begin a stop string.
#include "text/stream.h"

#include <algorithm>

#include "core/utf8.h"

namespace aerie {
namespace {

// How many bytes at the end of `text` may be the start of `stop`, without being all of it.
size_t begun_bytes(std::string_view text, std::string_view stop) {
    for (size_t count = std::min(text.size(), stop.size() - 1); count > 0; --count) {
        if (text.ends_with(stop.substr(0, count))) return count;
    }
    return 0;
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops, bool continues)
    : tokenizer_(&tokenizer),
      stops_(std::move(stops)),
      started_(continues || !tokenizer.drops_leading_space()) {
    // Such a string cannot be in the text; compared by bytes, it could match inside a character.
    std::erase_if(stops_, [](const std::string& stop) { return stop.empty() || !is_utf8(stop); });
}

std::string TextStream::push(int id) {
    unfinished_ += tokenizer_->bytes(id);
    return take(false);
}

std::string TextStream::finish() {
    return take(true);
}

std::string TextStream::take(bool all) {
    if (stopped_) return {};
    unfinished_.erase(0, append_utf8(held_, unfinished_, all));
    if (!started_ && !held_.empty()) {
        started_ = true;
        if (held_.front() == ' ') held_.erase(0, 1);
    }
    if (const size_t stop = find_stop(); stop != std::string::npos) {
        stopped_ = true;
        held_.resize(stop);
        all = true;
    }
    size_t keep = 0;
    if (!all) {
        for (const std::string& stop : stops_) keep = std::max(keep, begun_bytes(held_, stop));
    }
    std::string text = held_.substr(0, held_.size() - keep);
    held_.erase(0, text.size());
    return text;
}

size_t TextStream::find_stop() const {
    size_t first_begin = std::string::npos, first_end = std::string::npos;
    for (const std::string& stop : stops_) {
        const size_t begin = held_.find(stop);
        if (begin == std::string::npos) continue;
        const size_t end = begin + stop.size();
        if (end < first_end || (end == first_end && begin < first_begin)) {
            first_begin = begin;
            first_end = end;
        }
    }
    return first_begin;
}

}  // namespace aerie
