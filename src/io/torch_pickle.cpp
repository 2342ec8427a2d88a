// The pickle of a torch checkpoint, as far as a dict of tensors needs it. Nothing is executed: a
// global is one of seven known names, values lie in one flat arena, nothing here recurses.
#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/utf8.h"
#include "io/torch_bin.h"

namespace aerie {
namespace {

constexpr size_t kMaxPickleBytes = 100'000'000;
constexpr size_t kMaxOps = 4'000'000;
constexpr size_t kMaxMemo = kMaxOps;
constexpr size_t kMaxTensors = 65'536;
constexpr size_t kMaxDims = 8;
constexpr uint8_t kProto = 0x80;
constexpr uint8_t kStop = '.';

enum class Global : uint8_t { ordered_dict, rebuild_tensor, rebuild_parameter, storage_class };

struct KnownGlobal {
    std::string_view name;
    Global global;
    DType dtype = DType::F32;  // of a storage class
};

constexpr std::array kKnownGlobals{
    KnownGlobal{"collections.OrderedDict", Global::ordered_dict},
    KnownGlobal{"torch._utils._rebuild_tensor_v2", Global::rebuild_tensor},
    KnownGlobal{"torch._utils._rebuild_parameter", Global::rebuild_parameter},
    KnownGlobal{"torch.FloatStorage", Global::storage_class, DType::F32},
    KnownGlobal{"torch.HalfStorage", Global::storage_class, DType::F16},
    KnownGlobal{"torch.BFloat16Storage", Global::storage_class, DType::BF16},
    KnownGlobal{"torch.LongStorage", Global::storage_class, DType::I64},
    KnownGlobal{"torch.BoolStorage", Global::storage_class, DType::Bool},
};

enum class Kind : uint8_t { none, boolean, integer, string, global, tuple, dict, storage, tensor };

// What `at` and `number` mean: integer, boolean: number. string: offset, length in the pickle.
// global: index of kKnownGlobals. tuple: first element in the pool, count. dict, tensor: index.
// storage: index, data type.
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

struct Tensor {
    NamedTensor value;  // without its name
    bool contiguous = true;
};

// Row-major without holes; the stride of a dimension of one element does not matter.
bool is_contiguous(std::span<const int64_t> shape, std::span<const int64_t> strides) {
    int64_t expected = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        if (shape[i] == 0) return true;
        if (shape[i] != 1 && strides[i] != expected) return false;
        expected *= shape[i];  // checked_bytes has seen that the product fits
    }
    return true;
}

class Reader {
  public:
    Reader(std::span<const std::byte> pickle, std::span<const TorchStorage> storages,
           const std::string& file)
        : text_(reinterpret_cast<const char*>(pickle.data()), pickle.size()),
          storages_(storages),
          file_(file) {
        for (size_t i = 0; i < storages.size(); ++i) storage_index_.emplace(storages[i].key, i);
    }

    std::vector<NamedTensor> run();

  private:
    [[noreturn]] void fail(const std::string& why) const { throw Error(file_ + ": " + why); }

    // Bytes of the pickle.
    std::string_view take(size_t count);
    uint64_t take_number(size_t bytes);  // little-endian
    std::string_view take_line();

    // The stack. A mark is the stack's height when it was set.
    Ref pop();
    size_t pop_mark();
    size_t below(size_t count) const;  // the stack's height without its top `count` values
    void push(Value value);
    void push_string(std::string_view text);
    void push_tuple(size_t first);  // of the stack's values from there on
    void push_dict(bool ordered);

    // Values.
    std::string_view string(Ref ref, const char* what) const;
    int64_t integer(Ref ref, const char* what) const;
    std::span<const Ref> tuple(Ref ref, const char* what) const;
    std::vector<int64_t> integers(Ref ref, const char* what) const;

    // Opcodes. The first two return false if the opcode is none of theirs.
    bool execute_literal(uint8_t opcode);
    bool execute_memo(uint8_t opcode);
    void execute(uint8_t opcode);
    void push_global(std::string_view module, std::string_view name);
    void store_memo(size_t index);
    void load_memo(size_t index);
    void set_items(size_t first);
    void build();
    void persistent_id();
    void reduce();
    void rebuild_tensor(std::span<const Ref> arguments);

    std::vector<NamedTensor> named_tensors(Ref top);

    std::string_view text_;
    std::span<const TorchStorage> storages_;
    const std::string& file_;
    std::unordered_map<std::string_view, size_t> storage_index_;

    size_t position_ = 0;
    std::vector<Value> values_;
    std::vector<Ref> stack_;
    std::vector<size_t> marks_;
    std::vector<std::optional<Ref>> memo_;
    size_t memo_count_ = 0;
    std::vector<Ref> pool_;  // elements of tuples
    std::vector<Dict> dicts_;
    std::vector<Tensor> tensors_;
};

std::string_view Reader::take(size_t count) {
    if (count > text_.size() - position_) fail("pickle ends early");
    const std::string_view bytes = text_.substr(position_, count);
    position_ += count;
    return bytes;
}

uint64_t Reader::take_number(size_t bytes) {
    uint64_t number = 0;
    size_t shift = 0;
    for (const char byte : take(bytes)) {
        number |= uint64_t(uint8_t(byte)) << shift;
        shift += 8;
    }
    return number;
}

std::string_view Reader::take_line() {
    const size_t end = text_.find('\n', position_);
    if (end == std::string_view::npos) fail("pickle ends early");
    const std::string_view line = take(end - position_);
    take(1);
    return line;
}

size_t Reader::below(size_t count) const {
    // Values below a mark belong to what was open before it.
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count) fail("pickle stack is empty");
    return stack_.size() - count;
}

Ref Reader::pop() {
    const Ref top = stack_[below(1)];
    stack_.pop_back();
    return top;
}

size_t Reader::pop_mark() {
    if (marks_.empty()) fail("pickle has no mark");
    const size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
}

void Reader::push(Value value) {
    stack_.push_back(Ref(values_.size()));
    values_.push_back(value);
}

void Reader::push_string(std::string_view text) {
    push({Kind::string, uint32_t(text.data() - text_.data()), int64_t(text.size())});
}

void Reader::push_tuple(size_t first) {
    const Value value{Kind::tuple, uint32_t(pool_.size()), int64_t(stack_.size() - first)};
    pool_.insert(pool_.end(), stack_.begin() + ptrdiff_t(first), stack_.end());
    stack_.resize(first);
    push(value);
}

void Reader::push_dict(bool ordered) {
    push({Kind::dict, uint32_t(dicts_.size()), 0});
    dicts_.emplace_back().ordered = ordered;
}

std::string_view Reader::string(Ref ref, const char* what) const {
    const Value& value = values_[ref];
    if (value.kind != Kind::string) fail(std::string("pickle: ") + what + " is no string");
    return text_.substr(value.at, size_t(value.number));
}

int64_t Reader::integer(Ref ref, const char* what) const {
    const Value& value = values_[ref];
    if (value.kind != Kind::integer) fail(std::string("pickle: ") + what + " is no integer");
    return value.number;
}

std::span<const Ref> Reader::tuple(Ref ref, const char* what) const {
    const Value& value = values_[ref];
    if (value.kind != Kind::tuple) fail(std::string("pickle: ") + what + " is no tuple");
    return std::span(pool_).subspan(value.at, size_t(value.number));
}

std::vector<int64_t> Reader::integers(Ref ref, const char* what) const {
    const std::span<const Ref> elements = tuple(ref, what);
    if (elements.size() > kMaxDims) fail(std::string("pickle: ") + what + " of over 8 dimensions");
    std::vector<int64_t> numbers;
    for (const Ref element : elements) numbers.push_back(integer(element, what));
    return numbers;
}

void Reader::push_global(std::string_view module, std::string_view name) {
    const std::string full = std::string(module) + "." + std::string(name);
    for (size_t i = 0; i < kKnownGlobals.size(); ++i) {
        if (kKnownGlobals[i].name == full) return push({Kind::global, uint32_t(i), 0});
    }
    fail("pickle wants " + in_quotes(full) + ", which is not a tensor: refused");
}

void Reader::store_memo(size_t index) {
    if (index >= kMaxMemo) fail("pickle memo is too large");
    if (stack_.empty()) fail("pickle stack is empty");
    if (index >= memo_.size()) memo_.resize(index + 1);
    if (!memo_[index]) ++memo_count_;
    memo_[index] = stack_.back();
}

void Reader::load_memo(size_t index) {
    if (index >= memo_.size() || !memo_[index]) fail("pickle memo entry is missing");
    stack_.push_back(*memo_[index]);
}

void Reader::set_items(size_t first) {
    if (first == 0 || (stack_.size() - first) % 2 != 0) fail("pickle sets items of nothing");
    const Value& target = values_[stack_[first - 1]];
    if (target.kind != Kind::dict) fail("pickle sets items of something that is no dict");
    auto& items = dicts_[target.at].items;
    for (size_t i = first; i < stack_.size(); i += 2) items.emplace_back(stack_[i], stack_[i + 1]);
    stack_.resize(first);
}

// State of an OrderedDict: the attributes of a state dict (_metadata), which we do not need.
void Reader::build() {
    const Ref state = pop();
    const Ref target = pop();
    const Value& value = values_[target];
    if (value.kind != Kind::dict || !dicts_[value.at].ordered ||
        values_[state].kind != Kind::dict) {
        fail("pickle sets the state of something that is no OrderedDict");
    }
    stack_.push_back(target);
}

// ('storage', storage class, key, device, number of elements)
void Reader::persistent_id() {
    const std::span<const Ref> id = tuple(pop(), "persistent id");
    if (id.size() != 5 || string(id[0], "persistent id") != "storage") {
        fail("pickle: persistent id is no storage");
    }
    const Value& storage_class = values_[id[1]];
    if (storage_class.kind != Kind::global ||
        kKnownGlobals[storage_class.at].global != Global::storage_class) {
        fail("pickle: storage has no storage class");
    }
    const DType dtype = kKnownGlobals[storage_class.at].dtype;
    const std::string_view key = string(id[2], "storage key");
    const auto found = storage_index_.find(key);
    if (found == storage_index_.end()) fail("storage " + in_quotes(key) + " is not in the file");
    const int64_t elements = integer(id[4], "storage size");
    const size_t expected = checked_bytes(std::span(&elements, 1), dtype, file_ + ": storage");
    const size_t present = storages_[found->second].data.size();
    if (expected != present) {
        fail("storage " + in_quotes(key) + " has " + std::to_string(present) + " bytes, expected " +
             std::to_string(expected));
    }
    push({Kind::storage, uint32_t(found->second), int64_t(dtype)});
}

// (storage, offset, shape, strides, requires_grad, hooks[, metadata])
void Reader::rebuild_tensor(std::span<const Ref> arguments) {
    if (arguments.size() < 6 || arguments.size() > 7) fail("pickle: tensor has no 6 arguments");
    if (tensors_.size() == kMaxTensors) {
        fail("more than " + std::to_string(kMaxTensors) + " tensors");
    }
    const Value& storage = values_[arguments[0]];
    if (storage.kind != Kind::storage) fail("pickle: tensor has no storage");
    const DType dtype = DType(storage.number);
    const std::span<const std::byte> data = storages_[storage.at].data;

    const int64_t offset = integer(arguments[1], "tensor offset");
    const std::vector<int64_t> shape = integers(arguments[2], "tensor shape");
    const std::vector<int64_t> strides = integers(arguments[3], "tensor strides");
    if (strides.size() != shape.size()) fail("pickle: shape and strides differ in length");

    const size_t bytes = checked_bytes(shape, dtype, file_ + ": tensor");
    const size_t begin = checked_bytes(std::span(&offset, 1), dtype, file_ + ": tensor offset");
    if (begin > data.size() || bytes > data.size() - begin) {
        fail("tensor of shape " + shape_text(shape) + " lies outside its storage of " +
             std::to_string(data.size()) + " bytes");
    }
    push({Kind::tensor, uint32_t(tensors_.size()), 0});
    tensors_.push_back(
        {{"", dtype, shape, data.subspan(begin, bytes)}, is_contiguous(shape, strides)});
}

void Reader::reduce() {
    const std::span<const Ref> arguments = tuple(pop(), "arguments");
    const Value callable = values_[pop()];
    if (callable.kind != Kind::global) fail("pickle calls something that is no known function");
    switch (kKnownGlobals[callable.at].global) {
        case Global::ordered_dict:
            if (!arguments.empty()) fail("pickle: OrderedDict with arguments");
            push_dict(true);
            return;
        case Global::rebuild_tensor:
            return rebuild_tensor(arguments);
        case Global::rebuild_parameter:
            if (arguments.size() != 3 || values_[arguments[0]].kind != Kind::tensor) {
                fail("pickle: parameter is no tensor");
            }
            stack_.push_back(arguments[0]);
            return;
        case Global::storage_class:
            fail("pickle calls a storage class");
    }
}

bool Reader::execute_literal(uint8_t opcode) {
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

bool Reader::execute_memo(uint8_t opcode) {
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

void Reader::execute(uint8_t opcode) {
    if (execute_literal(opcode) || execute_memo(opcode)) return;
    switch (opcode) {
        case 0x95:  // FRAME: a hint for buffering
            take_number(8);
            return;
        case '(':  // MARK
            marks_.push_back(stack_.size());
            return;
        case 't':  // TUPLE
            return push_tuple(pop_mark());
        case 0x85:  // TUPLE1
        case 0x86:  // TUPLE2
        case 0x87:  // TUPLE3
            return push_tuple(below(opcode - 0x84u));
        case 's':  // SETITEM
            return set_items(below(2));
        case 'u':  // SETITEMS
            return set_items(pop_mark());
        case 'b':  // BUILD
            return build();
        case 'Q':  // BINPERSID
            return persistent_id();
        case 'R':  // REDUCE
            return reduce();
        case 'c': {  // GLOBAL
            const std::string_view module = take_line();
            return push_global(module, take_line());
        }
        case 0x93: {  // STACK_GLOBAL
            const Ref name = pop();
            return push_global(string(pop(), "module"), string(name, "global"));
        }
        default:
            fail("pickle opcode " + std::to_string(opcode) + " is not one that tensors need");
    }
}

std::vector<NamedTensor> Reader::named_tensors(Ref top) {
    const Value& value = values_[top];
    if (value.kind != Kind::dict) fail("pickle is no dict of tensors");
    const auto& items = dicts_[value.at].items;
    if (items.size() > kMaxTensors) fail("more than " + std::to_string(kMaxTensors) + " tensors");
    std::vector<NamedTensor> result;
    std::unordered_set<std::string_view> names;
    for (const auto& [key, item] : items) {
        const std::string_view name = string(key, "tensor name");
        if (!names.insert(name).second) fail("tensor " + in_quotes(name) + " is there twice");
        if (values_[item].kind != Kind::tensor) fail(in_quotes(name) + " is no tensor");
        const Tensor& tensor = tensors_[values_[item].at];
        if (!tensor.contiguous) fail("tensor " + in_quotes(name) + " is not contiguous");
        result.push_back(tensor.value);
        result.back().name = name;
    }
    return result;
}

std::vector<NamedTensor> Reader::run() {
    if (text_.size() > kMaxPickleBytes) {
        fail("pickle of " + std::to_string(text_.size()) + " bytes, expected at most " +
             std::to_string(kMaxPickleBytes));
    }
    if (take_number(1) != kProto) fail("pickle has no protocol number");
    const uint64_t protocol = take_number(1);
    if (protocol < 2 || protocol > 5) {
        fail("pickle protocol " + std::to_string(protocol) + ", expected 2 to 5");
    }
    for (size_t ops = 0;; ++ops) {
        if (ops == kMaxOps) fail("pickle of more than " + std::to_string(kMaxOps) + " opcodes");
        const uint8_t opcode = uint8_t(take_number(1));
        if (opcode == kStop) break;
        execute(opcode);
    }
    const Ref top = pop();
    if (!stack_.empty() || !marks_.empty() || position_ != text_.size()) {
        fail("pickle goes on after its dict of tensors");
    }
    return named_tensors(top);
}

}  // namespace

std::vector<NamedTensor> read_torch_pickle(std::span<const std::byte> pickle,
                                           std::span<const TorchStorage> storages,
                                           const std::string& file) {
    return Reader(pickle, storages, file).run();
}

}  // namespace aerie
