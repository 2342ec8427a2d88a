// Runs statements.
#include "core/utf8.h"
#include "jinja/evaluator.h"
#include "jinja/operators.h"
#include "jinja/print.h"

namespace aerie::jinja {
namespace {

// Nested expressions and statements, calls included. The limit bounds the machine's stack.
constexpr size_t kMaxLevels = 400;

}  // namespace

void Evaluator::set(Frame& frame, std::string_view name, const Value& value) {
    workspace_.touch(kBytesPerName * (1 + frame.names.size()));
    for (auto& [known, old] : frame.names) {
        if (known != name) continue;
        old = value;
        return;
    }
    frame.names.emplace_back(name, value);
}

Evaluator::Level::Level(Evaluator& evaluator) : evaluator_(evaluator) {
    if (evaluator_.depth_ == kMaxLevels) throw Fault("calls nested too deeply");
    ++evaluator_.depth_;
}

Rendered Evaluator::run(const Body& body) {
    TextBuilder out(workspace_);
    out_ = &out;
    execute(body);
    return std::move(out).rendered();
}

Evaluator::Flow Evaluator::execute(const Body& body) {
    const Level level(*this);
    for (const Statement& statement : body) {
        workspace_.step();
        line_ = statement.line;
        if (const Flow flow = execute(statement); flow != Flow::on) return flow;
    }
    return Flow::on;
}

Evaluator::Flow Evaluator::execute(const Statement& statement) {
    switch (statement.kind) {
        case StatementKind::data:
            out_->add(statement.text, kTemplate);
            return Flow::on;
        case StatementKind::print:
            print(*out_, workspace_, evaluate(statement.expressions[0]));
            return Flow::on;
        case StatementKind::for_loop:
            return for_loop(statement);
        case StatementKind::branch:
            return branch(statement);
        case StatementKind::set:
            assign(statement.expressions[0], evaluate(statement.expressions[1]));
            return Flow::on;
        case StatementKind::set_block:
            set_block(statement);
            return Flow::on;
        case StatementKind::macro: {
            Value macro;
            macro.kind = Kind::macro;
            macro.macro = workspace_.copy_of(Macro{&statement, scope_});
            set(*scope_, statement.text, macro);
            return Flow::on;
        }
        case StatementKind::call:
            call_block(statement);
            return Flow::on;
        case StatementKind::filter:
            filter_block(statement);
            return Flow::on;
        case StatementKind::with:
        case StatementKind::plain:
            return with(statement);
        case StatementKind::stop:
            return Flow::stop;
        case StatementKind::next:
            break;
    }
    return Flow::next;
}

// The items that pass the loop's condition. They may be kept in a namespace, so they live as long
// as the rendering.
std::span<const Value> Evaluator::loop_items(const Statement& statement, const Value& whole,
                                             Frame& frame) {
    const std::span<const Value> all = items_of(workspace_, whole);
    if (statement.expressions.size() == 2) return all;
    std::vector<Value> kept;
    Frame* const outside = std::exchange(scope_, &frame);
    for (const Value& item : all) {
        workspace_.step();
        frame.names.clear();
        assign(statement.expressions[0], item);
        if (is_true(evaluate(statement.expressions[2]))) kept.push_back(item);
    }
    scope_ = outside;
    return workspace_.list(kept, ListKind::list, kTemplate).list->span();
}

Evaluator::Flow Evaluator::for_loop(const Statement& statement) {
    return run_loop(statement, evaluate(statement.expressions[1]), 1);
}

// `depth`: 1, or more in a loop that called itself.
Evaluator::Flow Evaluator::run_loop(const Statement& statement, const Value& whole, int64_t depth) {
    Frame& frame = new_frame(scope_);
    const std::span<const Value> items = loop_items(statement, whole, frame);
    if (items.empty()) return statement.bodies.size() > 1 ? execute(statement.bodies[1]) : Flow::on;
    Value loop;
    loop.kind = Kind::loop;
    loop.loop = workspace_.copy_of(Loop{.items = items,
                                        .label = label_of(whole),
                                        .recursive = statement.recursive ? &statement : nullptr,
                                        .scope = scope_,
                                        .depth = depth});
    Frame* const outside = std::exchange(scope_, &frame);
    for (size_t i = 0; i < items.size(); ++i) {
        workspace_.step();
        loop.loop->at = i;
        frame.names.clear();
        set(frame, "loop", loop);
        assign(statement.expressions[0], items[i]);
        if (execute(statement.bodies[0]) == Flow::stop) break;
    }
    scope_ = outside;
    return Flow::on;
}

// Calls the macro with one more argument: the block, as the macro `caller`.
void Evaluator::call_block(const Statement& statement) {
    const Expression& expression = statement.expressions[0];
    const Step& last = expression.steps.back();
    Value callee = evaluate(expression.parts[0]);
    for (size_t i = 0; i + 1 < expression.steps.size(); ++i) {
        workspace_.step();
        callee = step(expression.steps[i], callee);
    }
    Value caller;
    caller.kind = Kind::macro;
    caller.macro = workspace_.copy_of(Macro{&statement.bodies[0][0], scope_});
    Arguments all = arguments(last);
    all.named.push_back({"caller", caller});
    line_ = last.line;
    print(*out_, workspace_, call(callee, all));
}

Evaluator::Flow Evaluator::branch(const Statement& statement) {
    for (size_t i = 0; i < statement.bodies.size(); ++i) {
        const bool is_else = i == statement.expressions.size();
        if (is_else || is_true(evaluate(statement.expressions[i]))) {
            return execute(statement.bodies[i]);
        }
    }
    return Flow::on;
}

// The values are evaluated in the outer scope.
Evaluator::Flow Evaluator::with(const Statement& statement) {
    Frame& frame = new_frame(scope_);
    std::vector<Value> values;
    for (size_t i = 1; i < statement.expressions.size(); i += 2) {
        values.push_back(evaluate(statement.expressions[i]));
    }
    Frame* const outside = std::exchange(scope_, &frame);
    for (size_t i = 0; i < values.size(); ++i) assign(statement.expressions[2 * i], values[i]);
    const Flow flow = execute(statement.bodies[0]);
    scope_ = outside;
    return flow;
}

void Evaluator::filter_block(const Statement& statement) {
    const Value text = make_text(captured(statement.bodies[0], new_frame(scope_)));
    print(*out_, workspace_, stepped(statement.expressions[0], text));
}

void Evaluator::set_block(const Statement& statement) {
    const Value text = make_text(captured(statement.bodies[0], new_frame(scope_)));
    assign(statement.expressions[0], stepped(statement.expressions[1], text));
}

void Evaluator::assign(const Expression& target, const Value& value) {
    if (target.kind == ExpressionKind::name) {
        return set(*scope_, target.text, value);
    }
    if (target.kind == ExpressionKind::steps) {
        const Value whole = name(target.parts[0].text);
        if (!whole.is(Kind::name_space)) {
            throw Fault("cannot set an attribute of " + in_quotes(target.parts[0].text) +
                        ", which is no namespace");
        }
        auto& names = whole.name_space->names;
        for (auto& [known, old] : names) {
            workspace_.touch(kBytesPerName + known.size());
            if (known != target.steps[0].name) continue;
            old = value;
            return;
        }
        names.emplace_back(target.steps[0].name, value);
        return;
    }
    const std::span<const Value> items = items_of(workspace_, value);
    if (items.size() != target.parts.size()) {
        throw Fault(std::to_string(items.size()) + " values for " +
                    std::to_string(target.parts.size()) + " names");
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
}

}  // namespace aerie::jinja
