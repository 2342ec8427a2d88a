#include "answer_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>

#include "core/error.h"
#include "core/replaced_file.h"
#include "io/input_file.h"
#include "terminal.h"

namespace aerie {

namespace {

constexpr const char* kSchema = "aerie-answers-1";
constexpr size_t kMaxBytes = size_t(1) << 32;

[[noreturn]] void fail(const std::string& path) {
    throw Error(path + ": cannot be written: " + std::strerror(errno));
}

bool is_regular(const platform::Handle& file) {
    struct stat info = {};
    return ::fstat(int(file.value()), &info) == 0 && S_ISREG(info.st_mode);
}

// Whether the end of a file, behind its last line, can be an answer that was not finished. After a
// power failure a file may end with zeros.
bool begins_answer(std::string_view unfinished) {
    unfinished = unfinished.substr(0, unfinished.find('\0'));
    const std::string answer = std::string("{\"schema\":\"") + kSchema + "\",";
    return unfinished.substr(0, answer.size()) == answer.substr(0, unfinished.size());
}

// A member that is text; null if it is missing or something else.
const std::string* text_of(const Json& line, const char* key) {
    const Json* member = line.object() ? line.find(key) : nullptr;
    return member ? member->string() : nullptr;
}

const char kOtherFile[] = ": name another file, or delete this one";

// Throws UsageError if it is no line of this schema.
Json parse_answer(const std::string& text, const std::string& place) {
    Json line;
    try {
        line = Json::parse(text, place);
    } catch (const Error&) {  // refused below, as any other line that is no answer
    }
    const std::string* schema = text_of(line, "schema");
    const Json* settings = schema && *schema == kSchema ? line.find("settings") : nullptr;
    if (!settings || !settings->object() || !text_of(line, "hash"))
        throw UsageError(place + " is no answer of aerie generate --prompts" + kOtherFile);
    return line;
}

}  // namespace

AnswerFile::AnswerFile(const std::optional<std::string>& path, const std::string& asked,
                       const std::vector<PromptLine>& prompts)
    : path_(path && *path != "-" ? *path : "") {
    std::string text;
    if (!path_.empty()) {
        std::error_code error;
        if (asked != "-" && std::filesystem::equivalent(path_, asked, error))
            throw UsageError(path_ + " is the file of the prompts: the answers need another one");
        file_ = platform::Handle(
            ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
        if (!file_) fail(path_);
        is_regular_ = is_regular(file_);
        if (is_regular_) {
            if (::flock(int(file_.value()), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
                throw UsageError(path_ + ": another aerie writes its answers there");
            text = read_text(path_, kMaxBytes);
        }
    }
    read(text, asked, prompts);
}

void AnswerFile::read(const std::string& text, const std::string& asked,
                      const std::vector<PromptLine>& prompts) {
    std::map<std::string, std::deque<size_t>> waiting;  // prompts without an answer, by hash
    for (size_t i = 0; i < prompts.size(); ++i) waiting[prompts[i].hash].push_back(i);
    std::map<std::string, std::string> errors;  // the newest line of a hash that is an error
    size_t begin = 0;
    int number = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
        const std::string line_text = text.substr(begin, end - begin);
        const std::string place = path_ + ": line " + std::to_string(++number);
        if (line_text.find_first_not_of(" \t\r") == std::string::npos) continue;
        const Json line = parse_answer(line_text, place);
        const std::string& hash = *text_of(line, "hash");
        if (line.find("error")) {  // It binds nothing: the prompt or the settings may be mended.
            errors[hash] = line_text + "\n";
            continue;
        }
        const auto found = waiting.find(hash);
        if (found == waiting.end())
            throw UsageError(place + " answers a prompt that " + asked +
                             " does not have: name another file, or delete this line");
        const Json& settings = *line.find("settings");
        if (!settings_.is_null() && settings.dump() != settings_.dump())
            throw UsageError(place + " has other settings than the lines before it" + kOtherFile);
        settings_ = settings;
        is_in_order_ = false;
        if (found->second.empty()) continue;  // the same answer stands there twice
        lines_[found->second.front()] = line_text + "\n";
        found->second.pop_front();
    }
    if (begin < text.size()) {
        if (!begins_answer(std::string_view(text).substr(begin)))
            throw UsageError(path_ + ": line " + std::to_string(number + 1) +
                             " is no answer of aerie generate --prompts" + kOtherFile);
        if (::ftruncate(int(file_.value()), off_t(begin)) != 0) fail(path_);
    }
    for (size_t i = 0; i < prompts.size(); ++i) {
        if (lines_.count(i)) continue;
        unanswered_.push_back(i);
        if (const auto error = errors.find(prompts[i].hash); error != errors.end())
            lines_[i] = error->second;
    }
    if (!errors.empty()) is_in_order_ = false;
}

std::optional<uint64_t> AnswerFile::seed() const {
    const Json* seed = settings_.object() ? settings_.find("seed") : nullptr;
    if (!seed || !seed->is_number()) return std::nullopt;
    return std::strtoull(seed->dump().c_str(), nullptr, 10);
}

void AnswerFile::set_settings(Json settings) {
    const auto differs = [&](const Json::Object& members, const Json& others, auto& tell) {
        for (const auto& [key, value] : members) {
            const Json* other = others.find(key);
            if (!other || other->dump() != value.dump()) tell(key);
        }
    };
    const auto refuse = [&](const std::string& key) {
        const Json *former = settings_.find(key), *now = settings.find(key);
        throw UsageError(path_ + " was answered with " + key + " " +
                         (former ? former->dump() : "null") + ", and this run has " +
                         (now ? now->dump() : "null") +
                         ": give the same flags, or name another file");
    };
    if (!settings_.is_null()) {
        differs(*settings.object(), settings_, refuse);
        differs(*settings_.object(), settings, refuse);
    }
    settings_ = std::move(settings);
}

void AnswerFile::add(size_t prompt, const Json::Object& line) {
    Json::Object whole = {{"schema", kSchema}};
    whole.insert(whole.end(), line.begin(), line.end());
    whole.emplace_back("settings", settings_);
    const std::string text = Json(std::move(whole)).dump() + "\n";
    ++added_;
    if (is_regular_) {
        if (!lines_.empty() && lines_.rbegin()->first >= prompt) is_in_order_ = false;
        lines_[prompt] = text;
        return write(text);
    }
    lines_[prompt] = text;
    while (printed_ < unanswered_.size()) {
        const auto next = lines_.find(unanswered_[printed_]);
        if (next == lines_.end()) return;
        write(next->second);
        lines_.erase(next);
        ++printed_;
    }
}

void AnswerFile::finish() {
    if (!is_regular_) {
        for (const auto& [prompt, line] : lines_) write(line);
        lines_.clear();
    } else if (!is_in_order_) {
        ReplacedFile(path_).commit([&](const ReplacedFile::Write& put) {
            for (const auto& [prompt, line] : lines_) put(line);
        });
    }
}

void AnswerFile::write(const std::string& line) {
    if (path_.empty()) return print(line);
    const auto* bytes = reinterpret_cast<const std::byte*>(line.data());
    errno = platform::write_all(file_, {bytes, line.size()});
    if (errno != 0) throw OutputError(path_ + ": cannot be written: " + std::strerror(errno));
}

}  // namespace aerie
