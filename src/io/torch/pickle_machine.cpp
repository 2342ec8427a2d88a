// Stack, memo and literals of pickle protocols 2 to 5, as far as tensors need them.
#include "io/torch/pickle_machine.h"

#include "core/error.h"

namespace aerie {
namespace {

constexpr size_t kMaxMemo = 1'000'000;
constexpr size_t kMaxPickledDims = 8;

}  // namespace

PickleMachine::PickleMachine(std::string_view text, const std::string& file)
    : text_(text), file_(file) {}

void PickleMachine::fail(const std::string& why) const {
    throw Error(file_ + ": " + why);
}

std::string_view PickleMachine::take(size_t count) {
    if (count > text_.size() - position_) fail("pickle ends early");
    const std::string_view bytes = text_.substr(position_, count);
    position_ += count;
    return bytes;
}

uint64_t PickleMachine::take_number(size_t bytes) {
    uint64_t number = 0;
    size_t shift = 0;
    for (const char byte : take(bytes)) {
        number |= uint64_t(uint8_t(byte)) << shift;
        shift += 8;
    }
    return number;
}

std::string_view PickleMachine::take_line() {
    const size_t end = text_.find('\n', position_);
    if (end == std::string_view::npos) fail("pickle ends early");
    const std::string_view line = take(end - position_);
    take(1);
    return line;
}

size_t PickleMachine::below(size_t count) const {
    // Values below a mark belong to what was open before it.
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count) fail("pickle stack is empty");
    return stack_.size() - count;
}

PickleMachine::Ref PickleMachine::pop() {
    const Ref top = stack_[below(1)];
    stack_.pop_back();
    return top;
}

size_t PickleMachine::pop_mark() {
    if (marks_.empty()) fail("pickle has no mark");
    const size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
}

void PickleMachine::push(Value value) {
    stack_.push_back(Ref(values_.size()));
    values_.push_back(value);
}

void PickleMachine::push_string(std::string_view text) {
    push({Kind::string, uint32_t(text.data() - text_.data()), int64_t(text.size())});
}

void PickleMachine::push_tuple(size_t first) {
    const Value value{Kind::tuple, uint32_t(pool_.size()), int64_t(stack_.size() - first)};
    pool_.insert(pool_.end(), stack_.begin() + ptrdiff_t(first), stack_.end());
    stack_.resize(first);
    push(value);
}

void PickleMachine::push_dict(bool ordered) {
    push({Kind::dict, uint32_t(dicts_.size()), 0});
    dicts_.emplace_back().ordered = ordered;
}

std::string_view PickleMachine::string(Ref ref, const char* what) const {
    const Value& value = values_[ref];
    if (value.kind != Kind::string) fail(std::string("pickle: ") + what + " is no string");
    return text_.substr(value.at, size_t(value.number));
}

int64_t PickleMachine::integer(Ref ref, const char* what) const {
    const Value& value = values_[ref];
    if (value.kind != Kind::integer) fail(std::string("pickle: ") + what + " is no integer");
    return value.number;
}

std::span<const PickleMachine::Ref> PickleMachine::tuple(Ref ref, const char* what) const {
    const Value& value = values_[ref];
    if (value.kind != Kind::tuple) fail(std::string("pickle: ") + what + " is no tuple");
    return std::span(pool_).subspan(value.at, size_t(value.number));
}

std::vector<int64_t> PickleMachine::sizes(Ref ref, const char* what) const {
    const std::span<const Ref> elements = tuple(ref, what);
    if (elements.size() > kMaxPickledDims)
        fail(std::string("pickle: ") + what + " of over 8 dimensions");
    std::vector<int64_t> numbers;
    for (const Ref element : elements) numbers.push_back(integer(element, what));
    return numbers;
}

void PickleMachine::store_memo(size_t index) {
    if (index >= kMaxMemo) fail("pickle memo is too large");
    if (stack_.empty()) fail("pickle stack is empty");
    if (index >= memo_.size()) memo_.resize(index + 1);
    if (!memo_[index]) ++memo_count_;
    memo_[index] = stack_.back();
}

void PickleMachine::load_memo(size_t index) {
    if (index >= memo_.size() || !memo_[index]) fail("pickle memo entry is missing");
    stack_.push_back(*memo_[index]);
}

void PickleMachine::set_items(size_t first) {
    if (first == 0 || (stack_.size() - first) % 2 != 0) fail("pickle sets items of nothing");
    const Value& target = values_[stack_[first - 1]];
    if (target.kind != Kind::dict) fail("pickle sets items of something that is no dict");
    auto& items = dicts_[target.at].items;
    for (size_t i = first; i < stack_.size(); i += 2) items.emplace_back(stack_[i], stack_[i + 1]);
    stack_.resize(first);
}

bool PickleMachine::execute_literal(uint8_t opcode) {
    switch (opcode) {
        case 'N':  // NONE
            push({Kind::none, 0, 0});
            return true;
        case 0x88:  // NEWTRUE
        case 0x89:  // NEWFALSE
            push({Kind::boolean, 0, opcode == 0x88});
            return true;
        case 'K':  // BININT1
            push({Kind::integer, 0, int64_t(take_number(1))});
            return true;
        case 'M':  // BININT2
            push({Kind::integer, 0, int64_t(take_number(2))});
            return true;
        case 'J':  // BININT
            push({Kind::integer, 0, int32_t(take_number(4))});
            return true;
        case 0x8A: {  // LONG1: two's complement of any length
            const size_t bytes = take_number(1);
            if (bytes > 8) fail("pickle: integer of more than 64 bits");
            const uint64_t raw = take_number(bytes);
            const size_t unused = 64 - 8 * bytes;
            push({Kind::integer, 0, bytes == 0 ? 0 : int64_t(raw << unused) >> unused});
            return true;
        }
        case 'X':  // BINUNICODE
            push_string(take(take_number(4)));
            return true;
        case 0x8C:  // SHORT_BINUNICODE
            push_string(take(take_number(1)));
            return true;
        case 0x8D:  // BINUNICODE8
            push_string(take(take_number(8)));
            return true;
        case '}':  // EMPTY_DICT
            push_dict(false);
            return true;
        case ')':  // EMPTY_TUPLE
            push_tuple(stack_.size());
            return true;
        default:
            return false;
    }
}

bool PickleMachine::execute_memo(uint8_t opcode) {
    switch (opcode) {
        case 'q':  // BINPUT
            store_memo(take_number(1));
            return true;
        case 'r':  // LONG_BINPUT
            store_memo(take_number(4));
            return true;
        case 0x94:  // MEMOIZE
            store_memo(memo_count_);
            return true;
        case 'h':  // BINGET
            load_memo(take_number(1));
            return true;
        case 'j':  // LONG_BINGET
            load_memo(take_number(4));
            return true;
        default:
            return false;
    }
}

const PickleMachine::Dict* PickleMachine::dict(Ref ref) const {
    return values_[ref].kind == Kind::dict ? &dicts_[values_[ref].at] : nullptr;
}

bool PickleMachine::execute(uint8_t opcode) {
    if (execute_literal(opcode) || execute_memo(opcode)) return true;
    switch (opcode) {
        case 0x95:  // FRAME: a hint for buffering
            take_number(8);
            return true;
        case '(':  // MARK
            marks_.push_back(stack_.size());
            return true;
        case 't':  // TUPLE
            push_tuple(pop_mark());
            return true;
        case 0x85:  // TUPLE1
        case 0x86:  // TUPLE2
        case 0x87:  // TUPLE3
            push_tuple(below(opcode - 0x84u));
            return true;
        case 's':  // SETITEM
            set_items(below(2));
            return true;
        case 'u':  // SETITEMS
            set_items(pop_mark());
            return true;
        default:
            return false;
    }
}

}  // namespace aerie
