// The pickle of a torch checkpoint: a dict of tensors. Eight globals are known: storage classes,
// functions that rebuild tensors, and OrderedDict. They are data here; any other global is refused.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/utf8.h"
#include "io/tensor_limit.h"
#include "io/torch/pickle_machine.h"
#include "io/torch/torch_bin.h"

namespace aerie {
namespace {

using Kind = PickleMachine::Kind;
using Ref = PickleMachine::Ref;
using Value = PickleMachine::Value;

constexpr size_t kMaxOps = 1'000'000;  // each takes up to 60 bytes of memory
constexpr uint8_t kProto = 0x80;
constexpr uint8_t kStop = '.';

enum class Global : uint8_t { ordered_dict, rebuild_tensor, rebuild_parameter, storage_class };

struct KnownGlobal {
    std::string_view name;
    Global global;
    DType dtype = DType::F32;  // for storage classes
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

struct Tensor {
    NamedTensor value;  // without its name
    bool contiguous = true;
};

// Row-major without holes; the stride of a dimension of one element does not matter.
bool is_contiguous(std::span<const int64_t> shape, std::span<const int64_t> strides) {
    // A tensor without elements has no holes, and the product of its other dimensions may overflow.
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
    int64_t expected = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        if (shape[i] != 1 && strides[i] != expected) return false;
        expected *= shape[i];  // checked_bytes has ruled out an overflow.
    }
    return true;
}

// In the machine's values, `at` is an index into kKnownGlobals, storages_ (with the data type in
// `number`) or tensors_, depending on the kind.
class Reader {
  public:
    Reader(std::string_view pickle, std::span<const TorchStorage> storages, const std::string& file)
        : machine_(pickle, file), storages_(storages), file_(file) {
        for (size_t i = 0; i < storages.size(); ++i) storage_index_.emplace(storages[i].key, i);
    }

    std::vector<NamedTensor> run();

  private:
    [[noreturn]] void fail(const std::string& why) const { machine_.fail(why); }
    const KnownGlobal* global(Ref ref) const;  // nullptr: something else

    void execute(uint8_t opcode);
    void push_global(std::string_view module, std::string_view name);
    void build();
    void persistent_id();
    void reduce();
    void rebuild_tensor(std::span<const Ref> arguments);
    std::vector<NamedTensor> named_tensors(Ref top) const;

    PickleMachine machine_;
    std::span<const TorchStorage> storages_;
    const std::string& file_;
    std::unordered_map<std::string_view, size_t> storage_index_;
    std::vector<Tensor> tensors_;
};

const KnownGlobal* Reader::global(Ref ref) const {
    const Value& value = machine_.value(ref);
    return value.kind == Kind::global ? &kKnownGlobals[value.at] : nullptr;
}

void Reader::push_global(std::string_view module, std::string_view name) {
    const std::string full = std::string(module) + "." + std::string(name);
    for (size_t i = 0; i < kKnownGlobals.size(); ++i) {
        if (kKnownGlobals[i].name == full) return machine_.push({Kind::global, uint32_t(i), 0});
    }
    fail("pickle wants " + in_quotes(full) + ", which is not a tensor: refused");
}

// BUILD of an OrderedDict. Its state (_metadata of a state dict) is not needed.
void Reader::build() {
    const Ref state = machine_.pop();
    const Ref target = machine_.pop();
    const PickleMachine::Dict* dict = machine_.dict(target);
    if (!dict || !dict->ordered || !machine_.dict(state)) {
        fail("pickle sets the state of something that is no OrderedDict");
    }
    machine_.push_again(target);
}

// ('storage', storage class, key, device, number of elements)
void Reader::persistent_id() {
    const std::span<const Ref> id = machine_.tuple(machine_.pop(), "persistent id");
    if (id.size() != 5 || machine_.string(id[0], "persistent id") != "storage") {
        fail("pickle: persistent id is no storage");
    }
    const KnownGlobal* storage_class = global(id[1]);
    if (!storage_class || storage_class->global != Global::storage_class) {
        fail("pickle: storage has no storage class");
    }
    const DType dtype = storage_class->dtype;
    const std::string_view key = machine_.string(id[2], "storage key");
    const auto found = storage_index_.find(key);
    if (found == storage_index_.end()) fail("storage " + in_quotes(key) + " is not in the file");
    const int64_t elements = machine_.integer(id[4], "storage size");
    const size_t expected = checked_bytes(std::span(&elements, 1), dtype, file_ + ": storage");
    const size_t present = storages_[found->second].data.range.size_bytes;
    if (expected != present) {
        fail("storage " + in_quotes(key) + " has " + std::to_string(present) + " bytes, expected " +
             std::to_string(expected));
    }
    machine_.push({Kind::storage, uint32_t(found->second), int64_t(dtype)});
}

// (storage, offset, shape, strides, requires_grad, hooks[, metadata])
void Reader::rebuild_tensor(std::span<const Ref> arguments) {
    if (arguments.size() < 6 || arguments.size() > 7) fail("pickle: tensor has no 6 arguments");
    if (tensors_.size() == kMaxTensors) {
        fail("more than " + std::to_string(kMaxTensors) + " tensors");
    }
    const Value& storage = machine_.value(arguments[0]);
    if (storage.kind != Kind::storage) fail("pickle: tensor has no storage");
    const DType dtype = DType(storage.number);
    const CheckedRange& data = storages_[storage.at].data;

    const int64_t offset = machine_.integer(arguments[1], "tensor offset");
    const std::vector<int64_t> shape = machine_.sizes(arguments[2], "tensor shape");
    const std::vector<int64_t> strides = machine_.sizes(arguments[3], "tensor strides");
    if (strides.size() != shape.size()) fail("pickle: shape and strides differ in length");

    const size_t bytes = checked_bytes(shape, dtype, file_ + ": tensor");
    const size_t begin = checked_bytes(std::span(&offset, 1), dtype, file_ + ": tensor offset");
    const size_t present = data.range.size_bytes;
    if (begin > present || bytes > present - begin) {
        fail("tensor of shape " + shape_text(shape) + " lies outside its storage of " +
             std::to_string(present) + " bytes");
    }
    machine_.push({Kind::tensor, uint32_t(tensors_.size()), 0});
    tensors_.push_back({{"", dtype, shape, {data.range.begin + begin, bytes}, data},
                        is_contiguous(shape, strides)});
}

void Reader::reduce() {
    const std::span<const Ref> arguments = machine_.tuple(machine_.pop(), "arguments");
    const KnownGlobal* callable = global(machine_.pop());
    if (!callable) fail("pickle calls something that is no known function");
    switch (callable->global) {
        case Global::ordered_dict:
            if (!arguments.empty()) fail("pickle: OrderedDict with arguments");
            machine_.push_dict(true);
            return;
        case Global::rebuild_tensor:
            return rebuild_tensor(arguments);
        case Global::rebuild_parameter:
            if (arguments.size() != 3 || machine_.value(arguments[0]).kind != Kind::tensor) {
                fail("pickle: parameter is no tensor");
            }
            machine_.push_again(arguments[0]);
            return;
        case Global::storage_class:
            fail("pickle calls a storage class");
    }
}

void Reader::execute(uint8_t opcode) {
    if (machine_.execute(opcode)) return;
    switch (opcode) {
        case 'b':  // BUILD
            return build();
        case 'Q':  // BINPERSID
            return persistent_id();
        case 'R':  // REDUCE
            return reduce();
        case 'c': {  // GLOBAL
            const std::string_view module = machine_.take_line();
            return push_global(module, machine_.take_line());
        }
        case 0x93: {  // STACK_GLOBAL
            const Ref name = machine_.pop(), module = machine_.pop();
            return push_global(machine_.string(module, "module"), machine_.string(name, "global"));
        }
        default:
            fail("pickle opcode " + std::to_string(opcode) + " is not one that tensors need");
    }
}

std::vector<NamedTensor> Reader::named_tensors(Ref top) const {
    const PickleMachine::Dict* dict = machine_.dict(top);
    if (!dict) fail("pickle is no dict of tensors");
    if (dict->items.size() > kMaxTensors) {
        fail("more than " + std::to_string(kMaxTensors) + " tensors");
    }
    std::vector<NamedTensor> result;
    std::unordered_set<std::string_view> names;
    for (const auto& [key, item] : dict->items) {
        const std::string_view name = machine_.string(key, "tensor name");
        if (!names.insert(name).second) fail("tensor " + in_quotes(name) + " is there twice");
        if (machine_.value(item).kind != Kind::tensor) fail(in_quotes(name) + " is no tensor");
        const Tensor& tensor = tensors_[machine_.value(item).at];
        if (!tensor.contiguous) fail("tensor " + in_quotes(name) + " is not contiguous");
        result.push_back(tensor.value);
        result.back().name = name;
    }
    return result;
}

std::vector<NamedTensor> Reader::run() {
    if (machine_.take_number(1) != kProto) fail("pickle has no protocol number");
    const uint64_t protocol = machine_.take_number(1);
    if (protocol < 2 || protocol > 5) {
        fail("pickle protocol " + std::to_string(protocol) + ", expected 2 to 5");
    }
    for (size_t ops = 0;; ++ops) {
        if (ops == kMaxOps) fail("pickle of more than " + std::to_string(kMaxOps) + " opcodes");
        const uint8_t opcode = uint8_t(machine_.take_number(1));
        if (opcode == kStop) break;
        execute(opcode);
    }
    const Ref top = machine_.pop();
    if (!machine_.is_empty() || !machine_.at_end()) {
        fail("pickle goes on after its dict of tensors");
    }
    return named_tensors(top);
}

}  // namespace

std::vector<NamedTensor> read_torch_pickle(std::string_view pickle,
                                           std::span<const TorchStorage> storages,
                                           const std::string& file) {
    return Reader(pickle, storages, file).run();
}

}  // namespace aerie
