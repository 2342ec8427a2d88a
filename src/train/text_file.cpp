#include "train/text_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/error.h"
#include "core/replaced_file.h"
#include "io/json.h"

namespace aerie::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSchema = "aerie-texts-1";

std::string line_of(const std::string& id, const std::string& kind, const std::vector<int>& tokens,
                    const std::vector<bool>& mask) {
    std::string answers;
    for (const bool is_answer : mask) answers += is_answer ? '1' : '0';
    Json line;
    line.set("id", id);
    if (!kind.empty()) line.set("kind", kind);
    line.set("ids", Json::Array(tokens.begin(), tokens.end()));
    line.set("mask", answers);
    return line.dump();
}

}  // namespace

TextFile::TextFile(const fs::path& path, const std::string& model, int vocab)
    : path_(path), model_(model), vocab_(vocab) {
    std::error_code none;
    if (!fs::exists(path, none)) {
        write(header());
        return;
    }
    std::ifstream file(path, std::ios::binary);
    std::string line;
    uintmax_t whole = 0;
    int number = 0;
    while (std::getline(file, line) && !file.eof()) {
        read_line(line, ++number);
        whole += line.size() + 1;
    }
    if (fs::file_size(path) != whole) fs::resize_file(path, whole);
    if (number == 0) write(header());  // a program was stopped before its first line was whole
}

std::string TextFile::header() const {
    return Json(Json::Object{{"schema", kSchema}, {"model", model_}}).dump();
}

void TextFile::read_line(const std::string& line, int number) {
    const std::string place = path_.string() + ": line " + std::to_string(number);
    const Json json = Json::parse(line, place);
    const auto text = [&](const char* key) -> const std::string& {
        const Json* member = json.find(key);
        if (!member || !member->string()) throw Error(place + ": no \"" + key + "\"");
        return *member->string();
    };
    if (number == 1) {
        if (text("schema") != kSchema) throw Error(place + ": not a file of training texts");
        if (text("model") != model_)
            throw Error(path_.string() + " has texts of " + text("model") + ", not of " + model_ +
                        ": name another folder");
        return;
    }
    const std::string &id = text("id"), &mask = text("mask");
    const Json* ids = json.find("ids");
    if (!ids || !ids->array() || ids->array()->size() != mask.size() || mask.size() < 2)
        throw Error(place + ": \"ids\" and \"mask\" must have the same length, two at least");
    std::vector<int> tokens;
    std::vector<bool> answers;
    for (size_t i = 0; i < mask.size(); ++i) {
        int64_t token = -1;
        if (!(*ids->array())[i].integer(token) || token < 0 || token >= vocab_)
            throw Error(place + ": a token id that the model does not have");
        tokens.push_back(int(token));
        answers.push_back(mask[i] == '1');
    }
    const Json* kind = json.find("kind");
    add(id, kind && kind->string() ? *kind->string() : "", std::move(tokens), std::move(answers));
}

void TextFile::add(const std::string& id, const std::string& kind, std::vector<int> tokens,
                   std::vector<bool> mask) {
    texts_.tokens.push_back(std::move(tokens));
    texts_.mask.push_back(std::move(mask));
    names_.push_back(id);
    kinds_.push_back(kind);
    ids_.insert(id);
}

void TextFile::append(const std::string& id, const std::string& kind,
                      const std::vector<int>& tokens, const std::vector<bool>& mask) {
    write(line_of(id, kind, tokens, mask));
    add(id, kind, tokens, mask);
}

size_t TextFile::keep_newest(size_t count) {
    const size_t dropped = names_.size() - std::min(count, names_.size());
    std::string content = header() + '\n';
    for (size_t text = dropped; text < names_.size(); ++text)
        content +=
            line_of(names_[text], kinds_[text], texts_.tokens[text], texts_.mask[text]) + '\n';
    ReplacedFile(path_, FileAccess::owner).commit(content);
    for (size_t text = 0; text < dropped; ++text) ids_.erase(names_[text]);
    const auto erase = [&](auto& all) { all.erase(all.begin(), all.begin() + ptrdiff_t(dropped)); };
    erase(texts_.tokens);
    erase(texts_.mask);
    erase(names_);
    erase(kinds_);
    return dropped;
}

void TextFile::write(const std::string& line) {
    std::error_code none;
    const bool is_new = !fs::exists(path_, none);
    const uintmax_t before = is_new ? 0 : fs::file_size(path_);
    errno = 0;
    std::ofstream file(path_, std::ios::binary | std::ios::app);
    file << line << '\n';
    file.close();
    if (file) return;
    const int error = errno ? errno : EIO;
    if (!is_new) fs::resize_file(path_, before, none);
    throw Error(path_.string() + ": " + std::strerror(error));
}

}  // namespace aerie::train
