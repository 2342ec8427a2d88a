// Runs a parsed template. Statements are in execute.cpp, expressions in evaluate.cpp, members and
// calls in members.cpp.
#pragma once

#include <ctime>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/format.h"
#include "jinja/syntax.h"
#include "jinja/workspace.h"

namespace aerie::jinja {

constexpr size_t kBytesPerName = 4;  // the cost of comparing a name of a template

// The names of a template, a loop, a macro or a block; other names are looked up in `parent`.
struct Frame {
    Frame* parent = nullptr;
    NamedValues names;
};

struct Macro {
    const Statement* statement = nullptr;
    Frame* scope = nullptr;  // where it was defined
};

struct Arguments {
    std::vector<Value> positional;
    std::vector<Named> named;
};

class Evaluator {
  public:
    Evaluator(const Variable::Object& variables, const std::tm& now);

    // Throws Fault.
    Rendered run(const Body& body);
    size_t line() const { return line_; }  // line of the statement or expression that ran last
    size_t given_bytes() const { return given_bytes_; }  // bytes of the variables that were read

    // For the filters, tests, methods and functions.
    Workspace& workspace() { return workspace_; }
    const std::tm& now() const { return now_; }
    Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments);
    bool apply_test(std::string_view name, const Value& value, const Arguments& arguments);
    Value attribute(const Value& value, std::string_view name);  // value.name
    Value item(const Value& value, const Value& key);            // value[key]
    Value new_namespace(const std::vector<Named>& names);

  private:
    enum class Flow : uint8_t { on, next, stop };
    // Lives as long as one level of evaluation. Throws Fault beyond the limit.
    class Level {
      public:
        explicit Level(Evaluator& evaluator);
        ~Level() { --evaluator_.depth_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        Evaluator& evaluator_;
    };

    Value from_json(const Json& json, Label label, size_t depth);
    Value from_variable(const Variable& variable, size_t depth);
    Text from_bytes(std::string_view bytes, Label label);

    // execute.cpp
    Flow execute(const Body& body);
    Flow execute(const Statement& statement);
    Flow for_loop(const Statement& statement);
    Flow run_loop(const Statement& statement, const Value& whole, int64_t depth);
    void call_block(const Statement& statement);
    std::span<const Value> loop_items(const Statement& statement, const Value& whole, Frame& frame);
    Flow branch(const Statement& statement);
    Flow with(const Statement& statement);
    void filter_block(const Statement& statement);
    void set_block(const Statement& statement);
    void assign(const Expression& target, const Value& value);
    Frame& new_frame(Frame* parent) {
        return frames_.emplace_back(Frame{parent, NamedValues(workspace_.memory())});
    }
    void set(Frame& frame, std::string_view name, const Value& value);
    // The text that `print` writes, run in this frame.
    template <typename Print>
    Text captured(Frame& frame, Print print);
    Text captured(const Body& body, Frame& frame) {
        return captured(frame, [&] { execute(body); });
    }

    // evaluate.cpp
    Value evaluate(const Expression& expression);
    Value compound(const Expression& expression);
    Value name(std::string_view name);
    Value list(const Expression& expression);
    Value dict(const Expression& expression);
    Value chain(const Expression& expression);
    Value comparison(const Expression& expression);
    bool holds(std::string_view op, const Value& a, const Value& b);
    Value logical(const Expression& expression);
    Value concat(const Expression& expression);
    Value conditional(const Expression& expression);
    Value stepped(const Expression& expression, const Value& first);
    Value step(const Step& step, const Value& value);
    Value slice(const Step& step, const Value& value);
    Arguments arguments(const Step& step);
    void spread(const Argument& argument, const Value& value, Arguments& all);

    // members.cpp
    Value loop_attribute(const Loop& loop, std::string_view name);
    Value call(const Value& callee, const Arguments& arguments);
    Value call_macro(const Macro& macro, const Arguments& arguments);
    Value call_loop(const Loop& loop, const Arguments& arguments);
    void enter_call();  // must be followed by --calls_
    void bind(const Macro& macro, const Arguments& arguments, Frame& frame);
    void bind_named(const Macro& macro, const Arguments& arguments, Frame& frame);

    Workspace workspace_;
    const std::tm& now_;
    std::pmr::deque<Frame> frames_{workspace_.memory()};
    std::pmr::deque<Namespace> namespaces_{workspace_.memory()};
    Frame* scope_ = nullptr;
    TextBuilder* out_ = nullptr;
    size_t depth_ = 0;
    size_t calls_ = 0;  // depth of calls of macros and loops
    size_t line_ = 1;
    size_t given_bytes_ = 0;
};

template <typename Print>
Text Evaluator::captured(Frame& frame, Print print) {
    TextBuilder inside(workspace_);
    TextBuilder* const outside = std::exchange(out_, &inside);
    Frame* const scope = std::exchange(scope_, &frame);
    print();
    out_ = outside;
    scope_ = scope;
    return inside.text();
}

}  // namespace aerie::jinja
