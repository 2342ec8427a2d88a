// SentencePiece tokens through the library, behind our own check of the model file.
#include "text/tokenizer.h"

#include <sentencepiece_processor.h>

#include <climits>
#include <optional>

#include "core/error.h"
#include "core/utf8.h"

// The library exports this without declaring it in its installed header.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace aerie {
namespace {

// The library joins runs of unknown characters in quadratic time where it cannot fall back to
// bytes.
constexpr size_t kMaxTextBytes = 1 << 20;
constexpr size_t kMaxTextBytesWithoutFallback = 64 << 10;

// Text of one piece, with U+2581 as a space.
std::string plain_text(std::string_view piece) {
    constexpr std::string_view kSpace = "\xE2\x96\x81";
    std::string text;
    while (!piece.empty()) {
        if (piece.starts_with(kSpace)) {
            text += ' ';
            piece.remove_prefix(kSpace.size());
        } else {
            text += piece.front();
            piece.remove_prefix(1);
        }
    }
    return text;
}

// "<0xAB>", as check_sentencepiece_model has seen.
char byte_of(const std::string& piece) {
    return char(std::stoi(piece.substr(3, 2), nullptr, 16));
}

// Added tokens are written as a string or as {"content": string}; null or absent is none.
const std::string* special_token(const Json& config, const char* key, const std::string& source) {
    const Json* token = config.find(key);
    if (!token || token->is_null()) return nullptr;
    if (const Json* content = token->find("content")) token = content;
    if (!token->string()) throw Error(source + ": " + key + " is no token");
    return token->string();
}

}  // namespace

struct Tokenizer::Impl {
    sentencepiece::SentencePieceProcessor library;
    std::vector<std::string> bytes;  // of each token
    std::string file;
    std::string chat_template;
    int bos = -1;
    int eos = -1;
    bool adds_bos = true;
    bool drops_leading_space = false;
    size_t max_text_bytes = kMaxTextBytesWithoutFallback;

    void fill_bytes();
    int id_of(const std::string& piece, const std::string& source) const;
    void read_config(const Json& config, const std::string& source);
};

void Tokenizer::Impl::fill_bytes() {
    for (int id = 0; id < library.GetPieceSize(); ++id) {
        const std::string& piece = library.IdToPiece(id);
        if (library.IsByte(id)) {
            bytes.emplace_back(1, byte_of(piece));
            max_text_bytes = kMaxTextBytes;
        } else if (library.IsUnknown(id)) {
            bytes.emplace_back(" \xE2\x81\x87 ");
        } else if (library.IsControl(id)) {
            bytes.emplace_back();
        } else {
            bytes.push_back(plain_text(piece));
        }
    }
}

int Tokenizer::Impl::id_of(const std::string& piece, const std::string& source) const {
    const int id = library.PieceToId(piece);
    if (id < 0 || library.IdToPiece(id) != piece) {
        throw Error(source + ": " + in_quotes(piece) + " is not a token of tokenizer.model");
    }
    return id;
}

void Tokenizer::Impl::read_config(const Json& config, const std::string& source) {
    if (!config.object()) throw Error(source + ": no JSON object");
    if (const std::string* token = special_token(config, "bos_token", source)) {
        bos = id_of(*token, source);
    }
    if (const std::string* token = special_token(config, "eos_token", source)) {
        eos = id_of(*token, source);
    }
    if (const Json* flag = config.find("add_bos_token"); flag && !flag->is_null()) {
        if (!flag->boolean()) throw Error(source + ": add_bos_token is no boolean");
        adds_bos = *flag->boolean();
    }
    if (adds_bos && bos < 0) throw Error(source + ": add_bos_token is true, but no token is BOS");
    if (const Json* known = config.find("chat_template"); known && known->string()) {
        chat_template = *known->string();
    }
}

Tokenizer::Tokenizer() : impl_(std::make_unique<Impl>()) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::from_bytes(std::string_view model, const std::string& file) {
    check_sentencepiece_model(model, file);
    constexpr int kFatalOnly = 3;
    sentencepiece::logging::SetMinLogLevel(kFatalOnly);
    Tokenizer tokenizer;
    Impl& impl = *tokenizer.impl_;
    if (!impl.library.LoadFromSerializedProto(model).ok()) {
        throw Error(file + ": SentencePiece refuses this model");
    }
    impl.file = file;
    impl.fill_bytes();
    // The library finds them by their text; what is no piece at all is the unknown one to it.
    const auto known = [&](int id) { return id >= 0 && !impl.library.IsUnknown(id) ? id : -1; };
    impl.bos = known(impl.library.bos_id());
    impl.eos = known(impl.library.eos_id());
    impl.adds_bos = impl.bos >= 0;
    const std::vector<int> probe = tokenizer.encode("a");
    impl.drops_leading_space = !probe.empty() && tokenizer.bytes(probe[0]).starts_with(' ');
    return tokenizer;
}

Tokenizer Tokenizer::load(const TokenizerSource& source) {
    Tokenizer tokenizer = from_bytes(source.bytes, source.file);
    if (source.config) tokenizer.impl_->read_config(source.config->json, source.config->file);
    return tokenizer;
}

int Tokenizer::size() const {
    return int(impl_->bytes.size());
}
int Tokenizer::bos() const {
    return impl_->bos;
}
int Tokenizer::eos() const {
    return impl_->eos;
}
bool Tokenizer::adds_bos() const {
    return impl_->adds_bos;
}
bool Tokenizer::drops_leading_space() const {
    return impl_->drops_leading_space;
}
const std::string& Tokenizer::chat_template() const {
    return impl_->chat_template;
}

std::vector<int> Tokenizer::encode(std::string_view text) const {
    if (text.size() > impl_->max_text_bytes) {
        throw UsageError("text of " + std::to_string(text.size()) + " bytes, " + impl_->file +
                         " takes at most " + std::to_string(impl_->max_text_bytes));
    }
    std::vector<int> ids;
    if (!impl_->library.Encode(text, &ids).ok()) {
        throw Error(impl_->file + ": SentencePiece cannot encode this text");
    }
    return ids;
}

std::vector<int> Tokenizer::encode_from_start(std::string_view text) const {
    std::vector<int> ids = encode(text);
    if (adds_bos()) ids.insert(ids.begin(), bos());
    return ids;
}

std::string_view Tokenizer::bytes(int id) const {
    return size_t(id) < impl_->bytes.size() ? impl_->bytes[size_t(id)] : std::string_view();
}

std::string Tokenizer::decode(const std::vector<int>& ids) const {
    std::string raw;
    for (const int id : ids) raw += bytes(id);
    std::string text;
    append_utf8(text, raw, true);
    if (drops_leading_space() && text.starts_with(' ')) text.erase(0, 1);
    return text;
}

}  // namespace aerie
