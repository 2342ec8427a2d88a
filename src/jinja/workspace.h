// The memory of one rendering and its limits: every step and every byte is counted here.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace aerie::jinja {

constexpr size_t kMaxSteps = 1'000'000;
constexpr size_t kBytesPerStep = 128;
constexpr size_t kMaxTextBytes = 4 << 20;
constexpr size_t kMaxItems = 200'000;    // in a list
constexpr size_t kMaxMemory = 32 << 20;  // bytes that live at the same time
constexpr size_t kMaxRuns = 1'000'000;   // in a result
constexpr size_t kMaxDepth = 64;  // in lists and dicts, in calls of macros, in a template's text

// An error without file and line, which Template::render adds. No other code sees it.
class Fault : public Error {
  public:
    using Error::Error;
};

// raise_exception was called.
class Raised : public Fault {
  public:
    using Fault::Fault;
};

// Steps, memory or the items of a list are used up.
class UsedUp : public Fault {
  public:
    using Fault::Fault;
};

// A text of more than kMaxTextBytes.
class LongText : public Fault {
  public:
    LongText() : Fault("text of more than 4 MB") {}
};

// Counts the memory that is allocated through it. Throws UsedUp beyond kMaxMemory.
class CountedMemory final : public std::pmr::memory_resource {
    void* do_allocate(size_t bytes, size_t alignment) override;
    void do_deallocate(void* block, size_t bytes, size_t alignment) override;
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }

    size_t held_ = 0;
};

class Workspace {
  public:
    Workspace() = default;
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    // For memory that is freed before the rendering ends, or that grows.
    std::pmr::memory_resource* memory() { return &counted_; }

    // These throw UsedUp if the steps are used up.
    void step() { touch(kBytesPerStep); }
    void touch(size_t bytes) {
        if (bytes > left_) run_out();
        left_ -= bytes;
    }

    Text copy(std::string_view bytes, Label label);
    Text copy(std::string_view bytes, std::span<const Label> labels, Label highest);
    template <typename T>
    T* copy_of(const T& value) {
        return new (allocate(sizeof(T))) T(value);
    }

    // Called before an item is added to an unfinished list of `count` items. Throws UsedUp if the
    // list is too long.
    void add_item(size_t count) {
        touch(sizeof(Value));
        if (count >= kMaxItems) too_long();
    }
    // `label`: for brackets and commas. These throw Fault if the result is deeper than kMaxDepth,
    // UsedUp if it is too long.
    Value list(const std::vector<Value>& items, ListKind kind, Label label);
    // A later entry of the same key replaces the value of the earlier one.
    Value dict(const std::vector<Entry>& entries, Label label);
    Value unique_dict(const std::vector<Entry>& entries, Label label);  // no key twice
    Value view(const std::vector<Value>& items, std::string_view name, Label label);

  private:
    void* allocate(size_t bytes);
    Value made(Dict dict);
    [[noreturn]] static void run_out();
    [[noreturn]] static void too_long();

    size_t left_ = kMaxSteps * kBytesPerStep;
    CountedMemory counted_;
    std::pmr::monotonic_buffer_resource kept_{&counted_};  // lives as long as the rendering
};

// Builds a text. Throws LongText if it grows past kMaxTextBytes.
class TextBuilder {
  public:
    explicit TextBuilder(Workspace& workspace)
        : workspace_(workspace), bytes_(workspace.memory()), labels_(workspace.memory()) {}

    void add(const Text& text);
    void add(std::string_view bytes, Label label) { add(text_of(bytes, label)); }
    size_t size() const { return bytes_.size(); }
    Text text();  // all that was added
    Rendered rendered() &&;

  private:
    void mark(const Text& text);

    Workspace& workspace_;
    std::pmr::string bytes_;
    std::pmr::vector<Label> labels_;  // per byte; empty while all are highest_
    Label highest_ = kTemplate;
};

}  // namespace aerie::jinja
