// Chat templates: a bounded interpreter of Jinja as published models use it, which knows of every
// byte of its result whether the template wrote it or the caller's data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "io/json.h"

namespace aerie::jinja {

// Who wrote a byte. The caller chooses what the labels above kTemplate mean; the higher one is
// trusted less, and wins wherever a byte is made from several (a number, the brackets of a list).
using Label = uint8_t;
constexpr Label kTemplate = 0;

// A variable of a template: JSON of one label, or a list or object of such.
class Variable {
  public:
    using List = std::vector<Variable>;
    using Object = std::vector<std::pair<std::string, Variable>>;  // no key twice

    // Every string in it, keys too, and whatever is printed of it is of this label.
    Variable(Json json, Label label) : value_(std::move(json)), label_(label) {}
    // `label`: of the brackets, commas and keys.
    Variable(List list, Label label) : value_(std::move(list)), label_(label) {}
    Variable(Object object, Label label) : value_(std::move(object)), label_(label) {}

    const aerie::Variant<Json, List, Object>& value() const { return value_; }
    Label label() const { return label_; }

  private:
    aerie::Variant<Json, List, Object> value_;
    Label label_;
};

// Bytes of one label.
struct Run {
    Label label = kTemplate;
    size_t bytes = 0;
    bool operator==(const Run&) const = default;
};

struct Rendered {
    std::string text;       // UTF-8
    std::vector<Run> runs;  // cover the text; neighbours differ, none is empty
};

// A template and the variables that it was given do not go together: it refused them by
// raise_exception, or it is a Failure.
class Refusal : public UsageError {
  public:
    Refusal(const std::string& place, std::string_view message);
    // Without the place, and as the template has it, line breaks too: its first 1,000 bytes, cut
    // between characters.
    const std::string& message() const { return message_; }

  private:
    std::string message_;
};

// The template cannot handle the variables, or a bound was hit.
class Failure : public Refusal {
  public:
    using Refusal::Refusal;
};

// A text of the variables, or one that the template makes of them, has more than 4 MB; or variables
// of more than 1 MB used up the steps or the memory of a rendering.
class TextTooLong : public Failure {
  public:
    using Failure::Failure;
};

// Parsed once, rendered as often as wanted, from several threads if need be.
//
// Bounds: 1 MB of template, 100,000 tokens, 64 levels of nesting; a rendering has 1,000,000 steps
// (handling 128 bytes is one), and 4 MB for its result and for any string. There are no includes,
// and nothing but the variables and the functions of the language can be reached.
class Template {
  public:
    // `file` names the template in errors. Throws Error (file, line and what is wrong).
    static Template parse(std::string_view text, const std::string& file);

    // As transformers' apply_chat_template renders, blocks trimmed. `now` is what strftime_now
    // sees. Throws Refusal, of which Failure and TextTooLong are kinds.
    Rendered render(const Variable::Object& variables, const std::tm& now) const;

    Template(Template&&) noexcept;
    Template& operator=(Template&&) noexcept;
    ~Template();

  private:
    struct Impl;
    explicit Template(std::unique_ptr<const Impl> impl);
    std::unique_ptr<const Impl> impl_;
};

}  // namespace aerie::jinja
