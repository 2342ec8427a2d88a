// Parsing a template once, rendering it, and errors that say where.
#include "text/jinja.h"

#include "core/utf8.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/lexer.h"

namespace aerie::jinja {
namespace {

constexpr size_t kMaxTemplateBytes = 1 << 20;

std::string one_line(std::string_view text) {
    constexpr size_t kMaxBytes = 1000;
    return printable(text.substr(0, kMaxBytes));
}

}  // namespace

Refusal::Refusal(const std::string& place, std::string message)
    : UsageError(place + ": " + one_line(message)), message_(std::move(message)) {}

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
    return Template(std::make_unique<const Impl>(Impl{file, jinja::parse(source, file)}));
}

Rendered Template::render(const Variable::Object& variables, const std::tm& now) const {
    size_t line = 1;
    const auto place = [&] { return impl_->file + ":" + std::to_string(line); };
    try {
        Evaluator evaluator(variables, now);
        try {
            return evaluator.run(impl_->body);
        } catch (const Fault&) {
            line = evaluator.line();
            throw;
        }
    } catch (const Raised& raised) {
        throw Refusal(place(), raised.what());
    } catch (const Fault& fault) {
        throw Error(place() + ": " + one_line(fault.what()));
    }
}

}  // namespace aerie::jinja
