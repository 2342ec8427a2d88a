// Chat templates: a bounded interpreter of Jinja as published models use it. For every byte of its
// result it knows whether the template wrote it or the caller's data.
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

// Says who wrote a byte. The caller defines the labels above kTemplate; a higher one is trusted
// less, and wins wherever a byte is made from several (a number, the brackets of a list).
using Label = uint8_t;
constexpr Label kTemplate = 0;

// A variable of a template: JSON of one label, or a list or object of variables.
class Variable {
  public:
    using List = std::vector<Variable>;
    using Object = std::vector<std::pair<std::string, Variable>>;  // no key twice

    // Every string in it, keys too, and whatever is printed of it has this label.
    Variable(Json json, Label label) : value_(std::move(json)), label_(label) {}
    // `label` is that of the brackets, commas and keys.
    Variable(List list, Label label) : value_(std::move(list)), label_(label) {}
    Variable(Object object, Label label) : value_(std::move(object)), label_(label) {}

    const aerie::Variant<Json, List, Object>& value() const { return value_; }
    Label label() const { return label_; }

  private:
    aerie::Variant<Json, List, Object> value_;
    Label label_;
};

// Consecutive bytes of one label.
struct Run {
    Label label = kTemplate;
    size_t bytes = 0;
    bool operator==(const Run&) const = default;
};

struct Rendered {
    std::string text;       // UTF-8
    std::vector<Run> runs;  // cover the text; neighbours differ, none is empty
};

// A template cannot be rendered with the given variables: it refused them by raise_exception, or
// this is a Failure.
class Refusal : public UsageError {
  public:
    Refusal(const std::string& place, std::string_view message);
    // The message without the place, as the template wrote it, with its line breaks: the first
    // 1,000 bytes, cut between characters.
    const std::string& message() const { return message_; }

  private:
    std::string message_;
};

// The template cannot handle the variables, or a limit was hit.
class Failure : public Refusal {
  public:
    using Refusal::Refusal;
};

// A text in the variables, or one that the template makes of them, has more than 4 MB; or variables
// of more than 1 MB used up the steps or the memory of a rendering.
class TextTooLong : public Failure {
  public:
    using Failure::Failure;
};

// A template that is parsed once and rendered as often as wanted, also by several threads at once.
//
// Bounds: 1 MB of template, 100,000 tokens, 64 levels of nesting; a rendering has 1,000,000 steps
// (handling 128 bytes is one), and 4 MB for its result and for any string. There are no includes,
// and nothing but the variables and the functions of the language can be reached.
class Template {
  public:
    // `file` names the template in errors. Throws Error (file, line and what is wrong).
    static Template parse(std::string_view text, const std::string& file);

    // Renders as transformers' apply_chat_template does, with trimmed blocks. strftime_now uses
    // `now`. Throws Refusal, or Failure and TextTooLong, which derive from it.
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
