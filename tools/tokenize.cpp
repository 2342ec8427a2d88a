// `aerie tokenize`: texts as a model's tokens, and tokens as text.
#include <unistd.h>

#include <filesystem>

#include "commands.h"
#include "core/error.h"
#include "core/utf8.h"
#include "format.h"
#include "io/json.h"
#include "model/draft_vocabulary.h"
#include "terminal.h"
#include "text/tokenizer.h"

namespace aerie {

namespace {

std::vector<std::string> read_strings(const std::string& file) {
    const Json list = Json::parse(read_input(file), file);
    if (!list.array()) throw Error(file + ": expected a list of texts");
    std::vector<std::string> strings;
    for (const Json& item : *list.array()) {
        if (!item.string())
            throw Error(file + ": entry " + std::to_string(strings.size()) + " is no text");
        strings.push_back(*item.string());
    }
    return strings;
}

// The token ids that `--decode` gives: "1,2,3", or a file of lists of them.
std::vector<std::vector<int>> read_lists(const std::string& text, const BpeTokenizer& tokenizer) {
    std::error_code ignored;
    const bool is_file = text == "-" || std::filesystem::exists(text, ignored);
    const bool are_ids =
        !is_file && !text.empty() && text.find_first_not_of("-0123456789, ") == text.npos;
    if (!is_file && !are_ids)
        throw UsageError("--decode takes ids, as in 1,2,3, or a file of lists of them, not " +
                         in_quotes(text));
    const std::string source = are_ids ? "--decode" : text;
    const Json lists = Json::parse(are_ids ? "[[" + text + "]]" : read_input(text), source);
    if (!lists.array()) throw Error(source + ": expected a list of lists of ids");
    std::vector<std::vector<int>> result;
    for (const Json& list : *lists.array()) {
        if (!list.array())
            throw Error(source + ": entry " + std::to_string(result.size()) +
                        " is no list of ids, as in [[1, 2], [3]]");
        std::vector<int> ids;
        for (const Json& item : *list.array()) {
            int64_t id = 0;
            if (!item.integer(id) || id < 0 || id >= tokenizer.size())
                throw Error(source + ": " + item.dump() + " is no token's id; they go from 0 to " +
                            std::to_string(tokenizer.size() - 1));
            ids.push_back(int(id));
        }
        result.push_back(std::move(ids));
    }
    return result;
}

UsageError no_text() {
    return UsageError("no text: give -p TEXT, -f FILE, --strings FILE or pipe it in");
}

std::vector<std::string> texts_of(const TokenizeOptions& options) {
    if (options.strings) return read_strings(*options.strings);
    if (options.prompt) return {*options.prompt};
    if (!options.prompt_file && isatty(STDIN_FILENO)) throw no_text();
    const std::string text = read_input(options.prompt_file.value_or("-"));
    if (!options.prompt_file && text.empty()) throw no_text();
    return {text};
}

Json list_of(const std::vector<int>& ids) {
    return Json::Array(ids.begin(), ids.end());
}

Json decoded(const BpeTokenizer& tokenizer, const std::vector<int>& ids) {
    return Json::Object{{"decoded", tokenizer.decode(ids, false)},
                        {"decoded_skip", tokenizer.decode(ids, true)}};
}

std::string escaped(char32_t code) {
    constexpr std::pair<char32_t, const char*> kShort[] = {
        {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}, {'\\', "\\\\"}};
    for (const auto& [known, text] : kShort)
        if (known == code) return text;
    if (is_control(code)) return format(code < 0x80 ? "\\x%02X" : "\\u%04X", unsigned(code));
    std::string text;
    append_char(text, code);
    return text;
}

// The text in quotes, safe for a terminal; bytes that are not UTF-8 as "\xF0".
std::string quoted(std::string_view bytes) {
    std::string text = "'";
    while (!bytes.empty()) {
        size_t size = 1;
        while (size < 4 && size < bytes.size() && !is_utf8(bytes.substr(0, size))) ++size;
        std::string_view character = bytes.substr(0, size);
        if (is_utf8(character)) {
            text += escaped(take_char(character));
        } else {
            text += format("\\x%02X", unsigned(uint8_t(bytes.front())));
            size = 1;
        }
        bytes.remove_prefix(size);
    }
    return text + "'";
}

// One line per token: its id, and its text inside of a text.
std::string table(const BpeTokenizer& tokenizer, const std::vector<int>& ids) {
    std::string lines;
    for (const int id : ids)
        lines += format("%7d  ", id) +
                 quoted(tokenizer.is_special(id) ? tokenizer.text(id) : tokenizer.bytes(id)) + "\n";
    return lines;
}

int print_counts(const Tokenizer& tokenizer, const TokenizeOptions& options) {
    if (options.decode || options.json)
        throw UsageError("--counts is of texts, and has no other form");
    const Recognised recognised = options.no_special ? Recognised::none : Recognised::all;
    std::vector<uint64_t> counts(size_t(tokenizer.size()));
    for (const std::string& text : texts_of(options))
        for (const int id : tokenizer.bpe().encode(text, recognised)) ++counts[size_t(id)];
    print(token_counts_text(counts));
    return 0;
}

}  // namespace

int run_tokenize(const TokenizeOptions& options) {
    const int inputs = int(options.prompt.has_value()) + int(options.prompt_file.has_value()) +
                       int(options.strings.has_value()) + int(options.decode.has_value());
    if (inputs > 1) throw UsageError("--prompt, --file, --strings and --decode exclude each other");
    const Tokenizer tokenizer = Tokenizer::load(locate_model(options.model));
    const BpeTokenizer& rules = tokenizer.bpe();
    if (options.counts) return print_counts(tokenizer, options);
    Json::Array results;
    if (options.decode) {
        for (const std::vector<int>& ids : read_lists(*options.decode, rules)) {
            results.push_back(decoded(rules, ids));
            if (!options.json) print(rules.decode(ids, false) + "\n");
        }
    } else {
        const Recognised recognised = options.no_special ? Recognised::none : Recognised::all;
        for (const std::string& text : texts_of(options)) {
            const std::vector<int> whole = tokenizer.encode_whole(text, recognised);
            Json result = Json::Object{{"ids", list_of(rules.encode(text, recognised))},
                                       {"ids_special", list_of(whole)}};
            const Json texts = decoded(rules, whole);
            for (const auto& [name, value] : *texts.object()) result.set(name, value);
            results.push_back(std::move(result));
            if (!options.json) print(table(rules, tokenizer.encode_from_start(text, recognised)));
        }
    }
    if (options.json)
        print(Json(Json::Object{{"schema", "aerie-tokenize-1"}, {"results", std::move(results)}})
                  .dump() +
              "\n");
    return 0;
}

}  // namespace aerie
