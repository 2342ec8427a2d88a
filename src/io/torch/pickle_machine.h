// The machine that a pickle drives: its bytes, stack, memo and plain values. It knows no Python
// objects, executes nothing and does not recurse; values lie in one flat arena.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aerie {

class PickleMachine {
  public:
    // The caller pushes and interprets the last three.
    enum class Kind : uint8_t {
        none,
        boolean,
        integer,
        string,
        tuple,
        dict,
        global,
        storage,
        tensor
    };

    // Meaning of `at` and `number`. boolean, integer: number. string: offset and length in the
    // pickle. tuple: first element in the pool, count. dict: index in dicts_.
    struct Value {
        Kind kind = Kind::none;
        uint32_t at = 0;
        int64_t number = 0;
    };

    using Ref = uint32_t;  // a value's index in the arena

    struct Dict {
        bool ordered = false;
        std::vector<std::pair<Ref, Ref>> items;
    };

    // `text` and `file`, which names the source in errors, must outlive the machine.
    PickleMachine(std::string_view text, const std::string& file);

    [[noreturn]] void fail(const std::string& why) const;

    // Executes an opcode that needs plain values only; returns false for another one. This and all
    // functions below throw Error if the pickle is malformed or exceeds a limit.
    bool execute(uint8_t opcode);

    std::string_view take(size_t count);  // bytes of the pickle
    uint64_t take_number(size_t bytes);   // little-endian
    std::string_view take_line();
    bool at_end() const { return position_ == text_.size(); }

    Ref pop();
    void push(Value value);
    void push_again(Ref ref) { stack_.push_back(ref); }
    void push_dict(bool ordered);
    bool is_empty() const { return stack_.empty() && marks_.empty(); }

    // `what` is named in the error if the value is of another kind.
    const Value& value(Ref ref) const { return values_[ref]; }
    std::string_view string(Ref ref, const char* what) const;
    int64_t integer(Ref ref, const char* what) const;
    std::span<const Ref> tuple(Ref ref, const char* what) const;  // until the next push
    std::vector<int64_t> sizes(Ref ref, const char* what) const;  // at most 8 dimensions
    const Dict* dict(Ref ref) const;                              // nullptr: something else

  private:
    bool execute_literal(uint8_t opcode);
    bool execute_memo(uint8_t opcode);
    void push_string(std::string_view text);
    void push_tuple(size_t first);  // takes the stack's values from `first` on
    void set_items(size_t first);
    void store_memo(size_t index);
    void load_memo(size_t index);
    size_t pop_mark();                 // the stack's height when the mark was set
    size_t below(size_t count) const;  // the stack's height without its top `count` values

    std::string_view text_;
    const std::string& file_;
    size_t position_ = 0;
    std::vector<Value> values_;
    std::vector<Ref> stack_;
    std::vector<size_t> marks_;
    std::vector<std::optional<Ref>> memo_;
    size_t memo_count_ = 0;
    std::vector<Ref> pool_;  // elements of tuples
    std::vector<Dict> dicts_;
};

}  // namespace aerie
