// A file in memory, for readers under test.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "io/tensor_file.h"

namespace aerie::test {

class MemorySource final : public ByteSource {
  public:
    explicit MemorySource(std::string_view text) : text_(text) {}  // text must outlive it
    size_t size_bytes() const override { return text_.size(); }
    void read(size_t at, std::span<std::byte> out) const override {
        // Bytes outside must never be asked for. This is no Error, since readers may throw those.
        if (at > text_.size() || out.size() > text_.size() - at) std::abort();
        if (!out.empty()) std::memcpy(out.data(), text_.data() + at, out.size());
    }

  private:
    std::string_view text_;
};

// The data of a tensor of this file, after its checksum was compared.
inline std::string data_of(std::string_view file, const NamedTensor& tensor) {
    std::string data(tensor.data.size_bytes, '\0');
    const MemorySource source(file);
    check_tensor(source, tensor, "tensor");
    source.read(tensor.data.begin, std::as_writable_bytes(std::span(data)));
    return data;
}

}  // namespace aerie::test
