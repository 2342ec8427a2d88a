// Parses a template once, renders it, and adds the place to errors.
#include "jinja/jinja.h"

#include <algorithm>

#include "core/utf8.h"
#include "jinja/evaluator.h"
#include "jinja/lexer.h"

namespace aerie::jinja {
namespace {

constexpr size_t kMaxTemplateBytes = 1 << 20;
constexpr size_t kLongVariables = 1 << 20;  // bytes: longer ones get the blame for a limit

// A message may quote a text of any length.
std::string_view shortened(std::string_view text) {
    constexpr size_t kMaxBytes = 1000;
    size_t end = std::min(text.size(), kMaxBytes);
    while (end > 0 && end < text.size() && (text[end] & 0xC0) == 0x80) --end;
    return text.substr(0, end);
}

}  // namespace

Refusal::Refusal(const std::string& place, std::string_view message)
    : UsageError(place + ": " + printable(shortened(message))), message_(shortened(message)) {}

struct Template::Impl {
    std::string file;
    Body body;
};

Template::Template(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Template Template::parse(std::string_view text, const std::string& file) {
    if (text.size() > kMaxTemplateBytes) throw Error(file + ": template of more than 1 MB");
    if (!is_utf8(text)) throw Error(file + ": template that is no UTF-8");
    const std::string source = normalised(text);
    auto made = std::make_unique<const Impl>(Impl{file, jinja::parse(source, file)});
    check_names(made->body, file);
    return Template(std::move(made));
}

Rendered Template::render(const Variable::Object& variables, const std::tm& now) const {
    size_t line = 1;
    size_t given_bytes = SIZE_MAX;  // until all variables are read, a limit is their fault
    const auto place = [&] { return impl_->file + ":" + std::to_string(line); };
    try {
        Evaluator evaluator(variables, now);
        try {
            return evaluator.run(impl_->body);
        } catch (const Fault&) {
            line = evaluator.line();
            given_bytes = evaluator.given_bytes();
            throw;
        }
    } catch (const Raised& raised) {
        throw Refusal(place(), raised.what());
    } catch (const LongText& fault) {
        throw TextTooLong(place(), fault.what());
    } catch (const UsedUp& fault) {
        if (given_bytes > kLongVariables) throw TextTooLong(place(), fault.what());
        throw Failure(place(), fault.what());
    } catch (const Fault& fault) {
        throw Failure(place(), fault.what());
    }
}

}  // namespace aerie::jinja
