// PCRE2 with just-in-time code where the system allows it.
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <optional>

#include "core/clock.h"
#include "core/error.h"
#include "core/utf8.h"
#include "text/regex_syntax.h"

namespace aerie {
namespace {

// Steps that one attempt may take: a fixed number, and so many for each byte. Splits of published
// models need fewer than 8 per byte.
constexpr size_t kFirstSteps = 10'000, kStepsPerByte = 32;
constexpr size_t kHeapKilobytes = 64 << 10;
constexpr size_t kFirstStack = 32 << 10, kMaxStack = 16 << 20;
// A pattern may need an attempt at each byte that looks at the whole rest of the text, even if
// every step is cheap. The steps of single-character loops are not counted, so time is the last
// resort: processor time, 20 times what splits of published models take.
constexpr double kFirstSeconds = 0.25, kSecondsPerByte = 0.4e-6;
constexpr size_t kBytesPerSearch = 2;  // counted for each search beside its text
// Between two looks at the clock, attempts times bytes are at most this.
constexpr size_t kBytesBetweenLooks = size_t(1) << 26;
constexpr size_t kMatchesBetweenLooks = 16;

template <auto free>
struct Freed {
    template <typename T>
    void operator()(T* object) const {
        free(object);
    }
};
using CompileContext = std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>>;

// Processor time of all threads of this program; wall-clock time where the system gives no other.
double processor_seconds_now() {
    return double(std::clock()) / CLOCKS_PER_SEC;
}

std::string message_of(int code) {
    PCRE2_UCHAR text[256] = {};
    pcre2_get_error_message(code, text, sizeof(text));
    return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Code {
    std::unique_ptr<pcre2_code, Freed<pcre2_code_free>> pcre;
    bool has_jit = false;
    std::string pattern, shown;
};

struct Regex::Scratch::State {
    MatchContext context{pcre2_match_context_create(nullptr)};
    MatchData data{pcre2_match_data_create(1, nullptr)};
    JitStack stack{pcre2_jit_stack_create(kFirstStack, kMaxStack, nullptr)};

    // Totals of the searches that are over; the running ones count from the start of the watch.
    size_t bytes = 0;
    double seconds = 0, processor_seconds = 0;
    bool is_watched = false;
    double begun = 0, processor_begun = 0;

    State() {
        if (!context || !data) throw std::bad_alloc();
        if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
        pcre2_set_heap_limit(context.get(), kHeapKilobytes);
    }

    // The wall clock is read first, because that is quick; but other programs may have had the
    // processor.
    bool is_too_slow() const {
        const double allowed = kFirstSeconds + kSecondsPerByte * double(bytes);
        return seconds + steady_seconds() - begun > allowed &&
               processor_seconds + processor_seconds_now() - processor_begun > allowed;
    }
};

Regex::Scratch::State& Regex::Scratch::state() {
    if (!state_) state_ = std::make_unique<State>();
    return *state_;
}

Regex::Scratch::Watch::Watch(Scratch& scratch) : state_(&scratch.state()) {
    if (state_->is_watched) {
        state_ = nullptr;
        return;
    }
    state_->is_watched = true;
    state_->begun = steady_seconds();
    state_->processor_begun = processor_seconds_now();
}

Regex::Scratch::Watch::~Watch() {
    if (!state_) return;
    state_->is_watched = false;
    state_->seconds += steady_seconds() - state_->begun;
    state_->processor_seconds += processor_seconds_now() - state_->processor_begun;
}

Regex::Scratch::Scratch() = default;
Regex::Scratch::Scratch(Scratch&&) noexcept = default;
Regex::Scratch& Regex::Scratch::operator=(Scratch&&) noexcept = default;
Regex::Scratch::~Scratch() = default;

Regex::Regex(std::string_view pattern) {
    const std::string text = pcre_pattern(pattern);
    const CompileContext context(pcre2_compile_context_create(nullptr));
    if (!context) throw std::bad_alloc();
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    auto code = std::make_shared<Code>();
    code->pattern = pattern;
    code->shown = in_quotes(pattern);
    int error = 0;
    PCRE2_SIZE place = 0;
    constexpr uint32_t kOptions =
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
    code->pcre.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), kOptions,
                                   &error, &place, context.get()));
    if (!code->pcre) throw Error("pattern " + code->shown + ": " + message_of(error));
    code->has_jit = pcre2_jit_compile(code->pcre.get(), PCRE2_JIT_COMPLETE) == 0;
    code_ = std::move(code);
}

const std::string& Regex::pattern() const {
    return code_->pattern;
}

// A walk through one text, match by match.
class Regex::Search {
  public:
    Search(const Code& code, std::string_view text, Scratch::State& state)
        : code_(code), text_(text), state_(state), window_(window_of(text.size())) {
        const size_t steps = kFirstSteps + kStepsPerByte * text.size();
        pcre2_set_match_limit(state.context.get(), uint32_t(std::min<size_t>(steps, UINT32_MAX)));
        state.bytes += kBytesPerSearch + text.size();
    }

    // The first match that begins in the window from `at` on; if there is none, `at` moves behind
    // it.
    std::optional<Span> next(size_t& at) {
        const size_t limit = std::min(at + window_, text_.size());
        pcre2_set_offset_limit(state_.context.get(), limit);
        const auto search = code_.has_jit && state_.stack ? pcre2_jit_match : pcre2_match;
        const int result =
            search(code_.pcre.get(), reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), at,
                   PCRE2_NO_UTF_CHECK, state_.data.get(), state_.context.get());
        if (result < 0 && result != PCRE2_ERROR_NOMATCH) fail(message_of(result));
        if (result < 0 || ++since_look_ == kMatchesBetweenLooks) {
            since_look_ = 0;
            if (state_.is_too_slow()) fail("takes too long");
        }
        if (result < 0) {
            at = after(limit);
            return std::nullopt;
        }
        const PCRE2_SIZE* span = pcre2_get_ovector_pointer(state_.data.get());
        return Span{span[0], span[1]};
    }

    // Where the character behind the one at `at` begins.
    size_t after(size_t at) const {
        do ++at;
        while (at < text_.size() && (uint8_t(text_[at]) & 0xC0) == 0x80);
        return at;
    }

  private:
    static size_t window_of(size_t bytes) {
        return std::clamp<size_t>(kBytesBetweenLooks / bytes, 64, 1 << 16);
    }
    [[noreturn]] void fail(const std::string& why) const {
        throw Error("pattern " + code_.shown + " on " + std::to_string(text_.size()) +
                    " bytes: " + why);
    }

    const Code& code_;
    std::string_view text_;
    Scratch::State& state_;
    size_t window_, since_look_ = 0;
};

void Regex::find_all(std::string_view text, Scratch& scratch, std::vector<Span>& found) const {
    found.clear();
    if (text.empty()) return;
    const Scratch::Watch watch(scratch);
    Search search(*code_, text, scratch.state());
    size_t last_end = std::string_view::npos;
    for (size_t at = 0; at <= text.size();) {
        const std::optional<Span> span = search.next(at);
        if (!span) continue;
        if (span->begin == span->end && span->end == last_end) {
            at = search.after(at);
            continue;
        }
        found.push_back(*span);
        at = last_end = span->end;
    }
}

}  // namespace aerie
