#include "answer_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/error.h"
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

// Whether a line that was not finished can be the beginning of an answer.
bool begins_answer(std::string_view unfinished) {
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
    if (!settings || !settings->object() || !text_of(line, "id"))
        throw UsageError(place + " is no answer of aerie generate --prompts" + kOtherFile);
    return line;
}

}  // namespace

AnswerFile::AnswerFile(const std::optional<std::string>& path, const std::string& asked,
                       const std::vector<PromptLine>& prompts)
    : path_(path.value_or("")) {
    for (const PromptLine& prompt : prompts) ids_.push_back(prompt.id);
    std::string text;
    if (path) {
        std::error_code error;
        if (asked != "-" && std::filesystem::equivalent(path_, asked, error))
            throw UsageError(path_ + " is the file of the prompts: the answers need another one");
        file_ = platform::Handle(
            ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
        if (!file_) fail(path_);
        if (is_regular(file_)) {
            if (::flock(int(file_.value()), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
                throw UsageError(path_ + ": another program writes its answers there");
            text = read_text(path_, kMaxBytes);
        }
    }
    read(text, asked, prompts);
}

void AnswerFile::read(const std::string& text, const std::string& asked,
                      const std::vector<PromptLine>& prompts) {
    const std::set<std::string> known(ids_.begin(), ids_.end());
    std::map<std::string, int> answered;
    size_t begin = 0;
    int number = 1;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
        const std::string place = path_ + ": line " + std::to_string(number++);
        const std::string line_text = text.substr(begin, end - begin);
        const Json line = parse_answer(line_text, place);
        const std::string& id = *text_of(line, "id");
        const Json& settings = *line.find("settings");
        if (!known.count(id))
            throw UsageError(place + " answers \"" + id + "\", a prompt that " + asked +
                             " does not have" + kOtherFile);
        if (!settings_.is_null() && settings.dump() != settings_.dump())
            throw UsageError(place + " has other settings than the lines before it" + kOtherFile);
        settings_ = settings;
        if (line.find("error"))
            errors_[id] = line_text + "\n";
        else
            ++answered[id];
    }
    if (begin < text.size()) {
        if (!begins_answer(std::string_view(text).substr(begin)))
            throw UsageError(path_ + ": line " + std::to_string(number) +
                             " is no answer of aerie generate --prompts" + kOtherFile);
        if (::ftruncate(int(file_.value()), off_t(begin)) != 0) fail(path_);
    }
    for (size_t i = 0; i < prompts.size(); ++i)
        if (answered[prompts[i].id]-- <= 0) unanswered_.push_back(i);
}

std::optional<uint64_t> AnswerFile::seed() const {
    const Json* seed = settings_.object() ? settings_.find("seed") : nullptr;
    int64_t value = 0;
    return seed && seed->integer(value) ? std::optional<uint64_t>(value) : std::nullopt;
}

void AnswerFile::set_settings(Json settings) {
    if (!settings_.is_null() && settings.dump() != settings_.dump()) {
        for (const auto& [key, value] : *settings.object()) {
            const Json* former = settings_.find(key);
            if (former && former->dump() == value.dump()) continue;
            throw UsageError(path_ + " was answered with " + key + " " +
                             (former ? former->dump() : "unknown") + ", and this run has " +
                             value.dump() + ": give the same flags, or name another file");
        }
    }
    settings_ = std::move(settings);
}

void AnswerFile::add(size_t place, const Json::Object& line) {
    Json::Object whole = {{"schema", kSchema}, {"settings", settings_}};
    whole.insert(whole.end(), line.begin(), line.end());
    waiting_.emplace(place, Json(std::move(whole)).dump() + "\n");
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
         first = waiting_.erase(first), ++next_)
        write(ids_[unanswered_[next_]], first->second);
}

void AnswerFile::write(const std::string& id, const std::string& line) {
    if (path_.empty()) return print(line);
    const auto error = errors_.find(id);
    if (error != errors_.end() && error->second == line) return;  // it stands there already
    const auto* bytes = reinterpret_cast<const std::byte*>(line.data());
    errno = platform::write_all(file_, {bytes, line.size()});
    if (errno != 0) throw OutputError(path_ + ": cannot be written: " + std::strerror(errno));
}

}  // namespace aerie
