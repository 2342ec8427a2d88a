// The memory of one rendering and what it may use: every step and every byte is counted here.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace aerie::jinja {

constexpr size_t kMaxSteps = 1'000'000;
constexpr size_t kBytesPerStep = 128;
constexpr size_t kMaxTextBytes = 4 << 20;
constexpr size_t kMaxDepth = 64;  // of lists and dicts, of calls of macros, of a template's text

// What went wrong, without file and line; Template::render adds them. No other code sees it.
class Fault : public Error {
  public:
    using Error::Error;
};

// raise_exception was called.
class Raised : public Fault {
  public:
    using Fault::Fault;
};

class Workspace {
  public:
    // Throw Fault when the steps are used up.
    void step() { touch(kBytesPerStep); }
    void touch(size_t bytes) {
        if (bytes > left_) run_out();
        left_ -= bytes;
    }

    Text copy(std::string_view bytes, Label label);
    Text copy(std::string_view bytes, const std::vector<Label>& labels, Label highest);
    template <typename T>
    T* copy_of(const T& value) {
        return new (allocate(sizeof(T))) T(value);
    }

    // `label`: of brackets and commas. Throw Fault if that is deeper than kMaxDepth.
    Value list(const std::vector<Value>& items, ListKind kind, Label label);
    // A later entry of the same key replaces the value of the earlier one.
    Value dict(const std::vector<Entry>& entries, Label label);
    Value unique_dict(const std::vector<Entry>& entries, Label label);  // no key twice
    Value view(const std::vector<Value>& items, std::string_view name, Label label);

  private:
    void* allocate(size_t bytes);
    Value made(Dict dict);
    [[noreturn]] static void run_out();

    size_t left_ = kMaxSteps * kBytesPerStep;
    std::pmr::monotonic_buffer_resource memory_;
};

// Puts a text together. Throws Fault if it grows past kMaxTextBytes.
class TextBuilder {
  public:
    explicit TextBuilder(Workspace& workspace) : workspace_(workspace) {}

    void add(const Text& text);
    void add(std::string_view bytes, Label label) { add(text_of(bytes, label)); }
    size_t size() const { return bytes_.size(); }
    Text text();  // what was added
    Rendered rendered() &&;

  private:
    void mark(const Text& text);

    Workspace& workspace_;
    std::string bytes_;
    std::vector<Label> labels_;  // of each byte; empty while all are highest_
    Label highest_ = kTemplate;
};

}  // namespace aerie::jinja
