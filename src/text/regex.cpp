// PCRE2 with just-in-time code where the system allows it.
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>

#include "core/clock.h"
#include "core/error.h"
#include "core/utf8.h"
#include "text/regex_syntax.h"

namespace aerie {
namespace {

// Steps that one attempt may take: a start and so many for each byte. Splits of published models
// need fewer than 8.
constexpr size_t kFirstSteps = 10'000, kStepsPerByte = 32;
constexpr size_t kHeapKilobytes = 64 << 10;
constexpr size_t kFirstStack = 32 << 10, kMaxStack = 16 << 20;
// A pattern whose every attempt is cheap may still need one at each byte that looks at all that
// follows. The steps of single-character loops are not counted, so time is the last resort.
constexpr double kMaxSeconds = 10;
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

std::string message_of(int code) {
    PCRE2_UCHAR text[256] = {};
    pcre2_get_error_message(code, text, sizeof(text));
    return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Code {
    std::unique_ptr<pcre2_code, Freed<pcre2_code_free>> pcre;
    bool has_jit = false;
    std::string shown;  // of the pattern
};

struct Regex::Room::State {
    MatchContext context{pcre2_match_context_create(nullptr)};
    MatchData data{pcre2_match_data_create(1, nullptr)};
    JitStack stack{pcre2_jit_stack_create(kFirstStack, kMaxStack, nullptr)};

    State() {
        if (!context || !data) throw std::bad_alloc();
        if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
        pcre2_set_heap_limit(context.get(), kHeapKilobytes);
    }
};

Regex::Room::Room() = default;
Regex::Room::Room(Room&&) noexcept = default;
Regex::Room& Regex::Room::operator=(Room&&) noexcept = default;
Regex::Room::~Room() = default;

Regex::Regex(std::string_view pattern) {
    const std::string text = pcre_pattern(pattern);
    const CompileContext context(pcre2_compile_context_create(nullptr));
    if (!context) throw std::bad_alloc();
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    auto code = std::make_shared<Code>();
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

void Regex::find_all(std::string_view text, Room& room, std::vector<Span>& found) const {
    found.clear();
    if (text.empty()) return;
    if (!room.state_) room.state_ = std::make_unique<Room::State>();
    Room::State& state = *room.state_;
    const size_t steps = kFirstSteps + kStepsPerByte * text.size();
    pcre2_set_match_limit(state.context.get(), uint32_t(std::min<size_t>(steps, UINT32_MAX)));
    const size_t window = std::clamp<size_t>(kBytesBetweenLooks / text.size(), 64, 1 << 16);
    const auto fail = [&](const std::string& why) {
        throw Error("pattern " + code_->shown + " on " + std::to_string(text.size()) +
                    " bytes: " + why);
    };
    const auto next_char = [&](size_t at) {
        do ++at;
        while (at < text.size() && (uint8_t(text[at]) & 0xC0) == 0x80);
        return at;
    };
    const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const auto search = code_->has_jit && state.stack ? pcre2_jit_match : pcre2_match;
    double start = -1;
    size_t since_look = 0, last_end = std::string_view::npos;
    for (size_t at = 0; at <= text.size();) {
        const size_t limit = std::min(at + window, text.size());
        pcre2_set_offset_limit(state.context.get(), limit);
        const int result = search(code_->pcre.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                                  state.data.get(), state.context.get());
        if (result < 0 && result != PCRE2_ERROR_NOMATCH) fail(message_of(result));
        if (result < 0 || ++since_look == kMatchesBetweenLooks) {
            since_look = 0;
            const double now = steady_seconds();
            if (start < 0) start = now;
            if (now - start > kMaxSeconds) fail("takes too long");
        }
        if (result < 0) {
            at = next_char(limit);
            continue;
        }
        const PCRE2_SIZE* span = pcre2_get_ovector_pointer(state.data.get());
        if (span[0] == span[1] && span[1] == last_end) {
            at = next_char(at);
            continue;
        }
        found.push_back({span[0], span[1]});
        at = last_end = span[1];
    }
}

}  // namespace aerie
