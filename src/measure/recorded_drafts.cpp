// Reading is strict, since an inconsistent record would give meaningless measurements.
#include "measure/recorded_drafts.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "io/input_file.h"

namespace aerie {

namespace {

constexpr size_t kMaxFileBytes = 8 << 20;
constexpr int kMaxTexts = 1000, kMaxPositions = 100'000;  // in all texts together
constexpr size_t kMaxDraftNodes = 1024;                   // in one draft
constexpr char kRun = '!', kTrue = '*', kEndOfNode = ' ';

// A log-probability is stored as one character, in steps of its square root, so that the best have
// the finest steps. The last character stands for everything negligible.
constexpr char kFirstStep = '0', kNegligibleStep = '~';
constexpr int kSteps = kNegligibleStep - kFirstStep - 1;

char step_of(float log_prob) {
    if (!(log_prob >= RecordedDrafts::kLeast)) return kNegligibleStep;
    const float part = std::min(log_prob, 0.0f) / RecordedDrafts::kLeast;
    return char(kFirstStep + std::lround(float(kSteps) * std::sqrt(part)));
}

float log_prob_of(char step) {
    if (step == kNegligibleStep) return RecordedDrafts::kNegligible;
    const float root = float(step - kFirstStep) / float(kSteps);
    return RecordedDrafts::kLeast * root * root;
}

class Decoder {
  public:
    explicit Decoder(std::string_view line) : line_(line) {}

    RecordedDraft decode() {
        draft_.resize(1);
        is_true_ = {true};
        for (size_t node = 0; node < draft_.size(); ++node) {
            if (node > 0 && next() != kEndOfNode) throw Error("a node has no end");
            while (at_ < line_.size() && line_[at_] != kEndOfNode) add_child(node);
        }
        if (at_ < line_.size()) throw Error("a node that nothing leads to");
        return std::move(draft_);
    }

  private:
    char next() {
        if (at_ == line_.size()) throw Error("a draft ends too early");
        return line_[at_++];
    }

    void add_child(size_t node) {
        char c = next();
        const bool is_run = c == kRun;
        if (is_run) c = next();
        const bool is_true = c == kTrue;
        if (is_true) c = next();
        if (c < kFirstStep || c > kNegligibleStep) throw Error("a character that means nothing");
        RecordedNode& parent = draft_[node];
        const int rank = int(parent.children.size());
        if (rank == kMaxTopK) throw Error("a node with too many children");
        if (is_true && (!is_true_[node] || parent.truth >= 0))
            throw Error("a true node below one that is not, or beside another");
        if (is_true) parent.truth = rank;
        parent.children.push_back({log_prob_of(c), is_run ? int(draft_.size()) : -1});
        if (!is_run) return;
        if (draft_.size() == kMaxDraftNodes) throw Error("a draft of too many nodes");
        is_true_.push_back(is_true);
        draft_.emplace_back();
    }

    std::string_view line_;
    size_t at_ = 0;
    RecordedDraft draft_;
    std::vector<bool> is_true_;
};

class Reader {
  public:
    Reader(std::string file, std::string_view text) : file_(std::move(file)), rest_(text) {}

    RecordedDrafts read() {
        if (line() != RecordedDrafts::kSchema)
            refuse(std::string("no record of schema ") + RecordedDrafts::kSchema);
        RecordedDrafts drafts;
        drafts.tau = number<double>("tau", 1, kMaxDepth + 1);
        drafts.texts.resize(size_t(number<int>("texts", 1, kMaxTexts)));
        int room = kMaxPositions;
        for (auto& text : drafts.texts) {
            const int positions = number<int>("text", 1, room);
            room -= positions;
            for (int i = 0; i < positions; ++i) text.push_back(draft());
        }
        if (!rest_.empty()) refuse("something follows the last text");
        return drafts;
    }

  private:
    [[noreturn]] void refuse(const std::string& what) const {
        throw Error(file_ + ": line " + std::to_string(number_) + ": " + what);
    }

    std::string_view line() {
        ++number_;
        const size_t end = rest_.find('\n');
        if (end == std::string_view::npos) refuse("the file ends too early");
        const std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        return line;
    }

    // Reads a line "name value".
    template <class Number>
    Number number(std::string_view name, Number low, Number high) {
        const std::string_view text = line();
        Number value = 0;
        if (text.starts_with(name) && text.size() > name.size() && text[name.size()] == ' ') {
            const auto [end, error] =
                std::from_chars(text.data() + name.size() + 1, text.data() + text.size(), value);
            if (error == std::errc() && end == text.data() + text.size() && value >= low &&
                value <= high)
                return value;
        }
        refuse("'" + std::string(name) + "' is missing or wrong");
    }

    std::string draft() {
        const std::string_view text = line();
        try {
            decode(text);
        } catch (const Error& error) {
            refuse(error.what());
        }
        return std::string(text);
    }

    std::string file_;
    std::string_view rest_;
    int number_ = 0;
};

}  // namespace

float as_recorded(float log_prob) {
    return log_prob_of(step_of(log_prob));
}

std::string encode(const RecordedDraft& draft) {
    std::string line;
    for (size_t node = 0; node < draft.size(); ++node) {
        if (node > 0) line += kEndOfNode;
        const auto& children = draft[node].children;
        for (size_t rank = 0; rank < children.size(); ++rank) {
            if (children[rank].node >= 0) line += kRun;
            if (draft[node].truth == int(rank)) line += kTrue;
            line += step_of(children[rank].log_prob);
        }
    }
    return line;
}

RecordedDraft decode(std::string_view line) {
    return Decoder(line).decode();
}

std::string to_text(const RecordedDrafts& drafts) {
    std::string text = std::string(RecordedDrafts::kSchema) + "\ntau " +
                       std::to_string(drafts.tau) + "\ntexts " +
                       std::to_string(drafts.texts.size()) + "\n";
    for (const auto& lines : drafts.texts) {
        text += "text " + std::to_string(lines.size()) + "\n";
        for (const std::string& line : lines) text += line + "\n";
    }
    return text;
}

RecordedDrafts read_recorded_drafts(const std::filesystem::path& path) {
    const std::string text = read_text(path, kMaxFileBytes);
    return Reader(path.string(), text).read();
}

}  // namespace aerie
