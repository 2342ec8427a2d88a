// The values of a GGUF file under keys that begin with its architecture's name.
#pragma once

#include <string>

#include "core/error.h"
#include "core/utf8.h"
#include "io/gguf/gguf.h"

namespace aerie {

// Keys are given without that prefix. The Gguf must outlive this. A value that is missing or of
// another kind throws Error naming file and key.
class GgufKeys {
  public:
    explicit GgufKeys(const Gguf& gguf) : gguf_(gguf), metadata_(gguf.metadata()) {
        prefix_ = std::string(metadata_.string("general.architecture")) + ".";
    }

    const GgufValue* find(const std::string& key) const { return metadata_.find(prefix_ + key); }
    // For an array with a number per layer, the number that all layers share.
    int64_t integer(const std::string& key) const {
        const GgufValue* value = find(key);
        return value && value->is_array() ? of_all_layers(key) : metadata_.integer(prefix_ + key);
    }
    double number(const std::string& key) const { return metadata_.number(prefix_ + key); }
    std::string string(const std::string& key) const {
        return std::string(metadata_.string(prefix_ + key));
    }
    int64_t integer(const std::string& key, int64_t fallback) const {
        return find(key) ? integer(key) : fallback;
    }
    double number(const std::string& key, double fallback) const {
        return find(key) ? number(key) : fallback;
    }
    bool boolean(const std::string& key, bool fallback) const {
        return find(key) ? metadata_.boolean(prefix_ + key) : fallback;
    }
    const GgufValue& integers(const std::string& key) const {
        return metadata_.integers(prefix_ + key);
    }
    [[noreturn]] void fail(const std::string& key, const std::string& why) const {
        throw Error(metadata_.file() + ": " + in_quotes(prefix_ + key) + " " + why);
    }
    bool has(const char* tensor) const { return gguf_.find(tensor) != nullptr; }
    const Gguf& gguf() const { return gguf_; }

    const std::string& prefix() const { return prefix_; }

  private:
    int64_t of_all_layers(const std::string& key) const {
        const GgufValue& list = integers(key);
        const int64_t layers = metadata_.integer(prefix_ + "block_count");
        if (list.size() == 0 || int64_t(list.size()) != layers)
            fail(key, "has " + std::to_string(list.size()) + " entries for " +
                          std::to_string(layers) + " layers");
        for (size_t i = 0; i < list.size(); ++i)
            if (!list.integer(i) || list.integer(i) != list.integer(0))
                fail(key, "is not the same for all layers; that is not implemented");
        return *list.integer(0);
    }

    const Gguf& gguf_;
    const GgufMetadata& metadata_;
    std::string prefix_;
};

}  // namespace aerie
