// Counts steps and memory, and allocates.
#include "jinja/workspace.h"

#include <algorithm>

#include "jinja/operators.h"

namespace aerie::jinja {
namespace {

constexpr size_t kBytesPerAddition = 8;  // the cost of adding a text, however short

uint8_t depth_of(const Value& value) {
    return value.is(Kind::list) ? value.list->depth : value.is(Kind::dict) ? value.dict->depth : 0;
}

uint8_t one_deeper(size_t depth) {
    if (depth >= kMaxDepth) {
        throw Fault("lists nested deeper than " + std::to_string(kMaxDepth));
    }
    return uint8_t(depth + 1);
}

}  // namespace

void* CountedMemory::do_allocate(size_t bytes, size_t alignment) {
    if (bytes > kMaxMemory - held_) {
        throw UsedUp("takes more than " + std::to_string(kMaxMemory >> 20) + " MB");
    }
    void* block = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    held_ += bytes;
    return block;
}

void CountedMemory::do_deallocate(void* block, size_t bytes, size_t alignment) {
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
    held_ -= bytes;
}

void Workspace::run_out() {
    throw UsedUp("takes more than " + std::to_string(kMaxSteps) + " steps");
}

void Workspace::too_long() {
    throw UsedUp("list of more than " + std::to_string(kMaxItems) + " items");
}

void* Workspace::allocate(size_t bytes) {
    touch(bytes);
    return kept_.allocate(bytes);
}

Text Workspace::copy(std::string_view bytes, Label label) {
    if (bytes.empty()) return {"", nullptr, 0, label};
    char* data = static_cast<char*>(allocate(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), data);
    return {data, nullptr, uint32_t(bytes.size()), label};
}

Text Workspace::copy(std::string_view bytes, std::span<const Label> labels, Label highest) {
    Text text = copy(bytes, highest);
    if (labels.empty()) return text;
    Label* kept = static_cast<Label*>(allocate(labels.size()));
    std::copy(labels.begin(), labels.end(), kept);
    text.labels = kept;
    return text;
}

Value Workspace::list(const std::vector<Value>& items, ListKind kind, Label label) {
    if (items.size() > kMaxItems) too_long();
    List list;
    size_t depth = 0;
    for (const Value& item : items) depth = std::max<size_t>(depth, depth_of(item));
    list.depth = one_deeper(depth);
    list.kind = kind;
    list.label = label;
    list.size = uint32_t(items.size());
    if (!items.empty()) {
        auto* kept = static_cast<Value*>(allocate(items.size() * sizeof(Value)));
        std::uninitialized_copy(items.begin(), items.end(), kept);
        list.items = kept;
    }
    Value value;
    value.kind = Kind::list;
    value.list = copy_of(list);
    return value;
}

Value Workspace::view(const std::vector<Value>& items, std::string_view name, Label label) {
    Value value = list(items, ListKind::view, label);
    List named = *value.list;
    named.view_name = name;
    value.list = copy_of(named);
    return value;
}

Value Workspace::made(Dict dict) {
    size_t depth = 0;
    for (const Entry& entry : dict.span()) {
        depth = std::max<size_t>({depth, depth_of(entry.key), depth_of(entry.value)});
    }
    dict.depth = one_deeper(depth);
    Value value;
    value.kind = Kind::dict;
    value.dict = copy_of(dict);
    return value;
}

Value Workspace::unique_dict(const std::vector<Entry>& entries, Label label) {
    if (entries.empty()) return made({nullptr, 0, 1, label});
    auto* kept = static_cast<Entry*>(allocate(entries.size() * sizeof(Entry)));
    std::uninitialized_copy(entries.begin(), entries.end(), kept);
    return made({kept, uint32_t(entries.size()), 1, label});
}

Value Workspace::dict(const std::vector<Entry>& entries, Label label) {
    std::vector<Entry> kept;
    for (const Entry& entry : entries) {
        const Dict known{kept.data(), uint32_t(kept.size()), 1, label};
        const size_t at = position_of(*this, known, entry.key);
        if (at == kept.size()) kept.push_back(entry);
        kept[at].value = entry.value;
    }
    return unique_dict(kept, label);
}

// Reserves room for `more` bytes: the capacity is doubled, up to the largest size of a text.
template <typename Bytes>
static void make_room(Bytes& bytes, size_t more) {
    const size_t size = bytes.size() + more;
    if (size <= bytes.capacity()) return;
    bytes.reserve(std::max(size, std::min(2 * bytes.capacity(), kMaxTextBytes)));
}

void TextBuilder::mark(const Text& text) {
    if (bytes_.empty()) highest_ = text.label;
    const bool is_mixed = text.labels || !labels_.empty() || text.label != highest_;
    if (is_mixed) {
        make_room(labels_, bytes_.size() - labels_.size() + text.size);
        labels_.resize(bytes_.size(), highest_);  // no change if labels were kept already
        for (size_t i = 0; i < text.size; ++i) labels_.push_back(text.label_at(i));
    }
    highest_ = std::max(highest_, text.label);
}

void TextBuilder::add(const Text& text) {
    workspace_.touch(kBytesPerAddition + text.size);
    if (text.size == 0) return;
    if (bytes_.size() + text.size > kMaxTextBytes) throw LongText();
    mark(text);
    make_room(bytes_, text.size);
    bytes_.append(text.view());
}

Text TextBuilder::text() {
    return workspace_.copy(bytes_, labels_, highest_);
}

Rendered TextBuilder::rendered() && {
    size_t count = labels_.empty() ? 0 : 1;
    for (size_t i = 1; i < labels_.size(); ++i) count += labels_[i] != labels_[i - 1];
    if (count > kMaxRuns) {
        throw Fault("more than " + std::to_string(kMaxRuns) + " changes between texts");
    }
    Rendered result;
    result.runs.reserve(count);
    for (size_t i = 0; i < bytes_.size();) {
        size_t end = labels_.empty() ? bytes_.size() : i + 1;
        while (end < bytes_.size() && labels_[end] == labels_[i]) ++end;
        result.runs.push_back({labels_.empty() ? highest_ : labels_[i], end - i});
        i = end;
    }
    result.text = bytes_;
    return result;
}

}  // namespace aerie::jinja
