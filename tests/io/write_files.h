// Small writers of safetensors, zip, pickle and torch files, right by default and wrong on request.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aerie::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string little_endian(uint64_t value, size_t bytes) {
    std::string out;
    for (size_t i = 0; i < bytes; ++i) out += i < 8 ? char(value >> (8 * i)) : 0;
    return out;
}

// A safetensors file with any header text and any data.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
    return little_endian(header.size(), 8) + std::string(header) + std::string(data);
}

// One entry of a safetensors header: `"name":{...}`.
inline std::string safetensors_entry(const std::string& name, const std::string& dtype,
                                     const std::string& shape, uint64_t begin, uint64_t end) {
    std::string entry;
    entry.append("\"").append(name).append("\":{\"dtype\":\"").append(dtype);
    entry.append("\",\"shape\":").append(shape).append(",\"data_offsets\":[");
    entry.append(std::to_string(begin)).append(",").append(std::to_string(end)).append("]}");
    return entry;
}

// A JSON object of such entries.
inline std::string safetensors_header(const std::vector<std::string>& entries) {
    std::string header = "{";
    for (const std::string& entry : entries) {
        if (header.size() > 1) header += ',';
        header += entry;
    }
    return header + "}";
}

// A safetensors file with tensors one after another.
class SafetensorsWriter {
  public:
    // `shape` as JSON, "[2, 3]".
    SafetensorsWriter& add(const std::string& name, const std::string& dtype,
                           const std::string& shape, const std::string& data) {
        entries_.push_back(
            safetensors_entry(name, dtype, shape, data_.size(), data_.size() + data.size()));
        data_ += data;
        return *this;
    }
    std::string file() const { return safetensors_file(safetensors_header(entries_), data_); }

  private:
    std::vector<std::string> entries_;
    std::string data_;
};

struct ZipFile {
    std::string name = {};
    std::string data = {};
    uint16_t method = 0;  // stored
    uint16_t flags = 0;
    bool zip64 = false;                          // sizes and offset in a zip64 extra field
    std::optional<uint64_t> claimed_size = {};   // instead of the data's size
    std::optional<uint64_t> claimed_place = {};  // instead of the local header's
    bool checksum = false;                       // else 0, which torch can write, too
    // Bytes [at, at + size) of the local header, counted from its signature, that are replaced.
    struct Patch {
        size_t at = 0;
        std::string bytes = {};
    };
    std::optional<Patch> local = {};
    bool later = false;           // sizes and checksum follow the data, as torch writes them
    std::string descriptor = {};  // instead of the sizes and checksum then
};

// CRC-32, bit by bit.
inline uint32_t simple_crc32(std::string_view text) {
    uint32_t crc = ~0u;
    for (const char c : text) {
        crc ^= uint8_t(c);
        for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
    }
    return ~crc;
}

// A zip file; with `zip64_end` also the zip64 end record and its locator.
class ZipWriter {
  public:
    ZipWriter& add(const ZipFile& entry) {
        const uint64_t place = entry.claimed_place.value_or(body_.size());
        const uint64_t size = entry.claimed_size.value_or(entry.data.size());
        std::string extra;
        if (entry.zip64) {
            extra = little_endian(1, 2) + little_endian(24, 2) + little_endian(size, 8) +
                    little_endian(size, 8) + little_endian(place, 8);
        }
        const uint64_t shown_size = entry.zip64 ? UINT32_MAX : size;
        const uint16_t flags = uint16_t(entry.flags | (entry.later ? 8 : 0));
        const std::string common = little_endian(flags, 2) + little_endian(entry.method, 2) +
                                   little_endian(0, 4) +  // time, date
                                   little_endian(entry.checksum ? simple_crc32(entry.data) : 0, 4) +
                                   little_endian(shown_size, 4) + little_endian(shown_size, 4) +
                                   little_endian(entry.name.size(), 2);
        std::string local = "PK\x03\x04" + little_endian(45, 2) + common + little_endian(0, 2);
        // The local zip64 field has both sizes, which come first in the directory's field, too.
        const std::string local_extra =
            entry.zip64 && !entry.later
                ? little_endian(1, 2) + little_endian(16, 2) + extra.substr(4, 16)
                : "";
        local.replace(28, 2, little_endian(local_extra.size(), 2));
        if (entry.later) local.replace(14, 12, std::string(12, '\0'));
        if (entry.local)
            local.replace(entry.local->at, entry.local->bytes.size(), entry.local->bytes);
        body_ += local + entry.name + local_extra + entry.data;
        const size_t size_bytes = entry.zip64 ? 8 : 4;
        if (entry.later)
            body_ += !entry.descriptor.empty()
                         ? entry.descriptor
                         : "PK\x07\x08" +
                               little_endian(entry.checksum ? simple_crc32(entry.data) : 0, 4) +
                               little_endian(size, size_bytes) + little_endian(size, size_bytes);
        directory_ += "PK\x01\x02" + little_endian(45, 2) + little_endian(45, 2) + common +
                      little_endian(extra.size(), 2) + little_endian(0, 10) +
                      little_endian(entry.zip64 ? UINT32_MAX : place, 4) + entry.name + extra;
        ++count_;
        return *this;
    }

    std::string file(bool zip64_end = false) const {
        const uint64_t place = body_.size(), size = directory_.size();
        std::string end;
        if (zip64_end) {
            end = "PK\x06\x06" + little_endian(44, 8) + little_endian(45, 2) +
                  little_endian(45, 2) + little_endian(0, 8) + little_endian(count_, 8) +
                  little_endian(count_, 8) + little_endian(size, 8) + little_endian(place, 8);
            end += "PK\x06\x07" + little_endian(0, 4) + little_endian(place + size, 8) +
                   little_endian(1, 4);
        }
        end += "PK\x05\x06" + little_endian(0, 4) + little_endian(zip64_end ? 0xFFFF : count_, 2) +
               little_endian(zip64_end ? 0xFFFF : count_, 2) +
               little_endian(zip64_end ? UINT32_MAX : size, 4) +
               little_endian(zip64_end ? UINT32_MAX : place, 4) + little_endian(0, 2);
        return body_ + directory_ + end;
    }

  private:
    std::string body_;
    std::string directory_;
    size_t count_ = 0;
};

struct TorchTensor {
    std::string name = {};
    std::string storage_class = "FloatStorage";
    int element_bytes = 4;
    std::vector<int64_t> shape = {};
    std::string data = {};  // data of the storage
    // These replace what follows from the members above:
    std::optional<std::string> key = {};
    std::optional<int64_t> elements = {}, offset = {};
    std::optional<std::vector<int64_t>> strides = {};
};

// A pickle of protocol 2, opcode by opcode.
class PickleWriter {
  public:
    PickleWriter& raw(std::string_view opcodes) {
        text_ += opcodes;
        return *this;
    }
    PickleWriter& string(std::string_view value) {
        return raw("X").raw(little_endian(value.size(), 4)).raw(value);
    }
    PickleWriter& integer(int64_t value) {  // BININT, or LONG1 of 8 bytes
        if (value == int32_t(value)) return raw("J").raw(little_endian(uint64_t(value), 4));
        return raw("\x8A\x08").raw(little_endian(uint64_t(value), 8));
    }
    PickleWriter& global(const std::string& module, const std::string& name) {
        return raw("c").raw(module).raw("\n").raw(name).raw("\n");
    }
    PickleWriter& tuple(const std::vector<int64_t>& values) {
        raw("(");
        for (const int64_t value : values) integer(value);
        return raw("t");
    }
    // The storage's persistent id, then the storage.
    PickleWriter& storage(const TorchTensor& tensor, const std::string& key) {
        raw("(").string("storage").global("torch", tensor.storage_class).string(key).string("cpu");
        integer(tensor.elements.value_or(int64_t(tensor.data.size()) / tensor.element_bytes));
        return raw("tQ");
    }
    // A call of _rebuild_tensor_v2.
    PickleWriter& tensor(const TorchTensor& tensor, const std::string& key) {
        global("torch._utils", "_rebuild_tensor_v2").raw("(").storage(tensor, key);
        integer(tensor.offset.value_or(0)).tuple(tensor.shape);
        tuple(tensor.strides.value_or(row_major(tensor.shape)));
        return raw("\x89").global("collections", "OrderedDict").raw(")RtR");
    }
    std::string text() const { return std::string("\x80\x02", 2) + text_ + "."; }

  private:
    static std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
        std::vector<int64_t> strides(shape.size());
        uint64_t stride = 1;  // unsigned: a shape may be meant to overflow
        for (size_t i = shape.size(); i-- > 0; stride *= uint64_t(shape[i])) {
            strides[i] = int64_t(stride);
        }
        return strides;
    }

    std::string text_;
};

// A dict of tensors as torch.save writes it; the i-th storage has the key "i" unless its tensor has
// another.
inline std::string torch_pickle(const std::vector<TorchTensor>& tensors) {
    PickleWriter pickle;
    pickle.raw("}(");
    for (size_t i = 0; i < tensors.size(); ++i) {
        pickle.string(tensors[i].name);
        pickle.tensor(tensors[i], tensors[i].key.value_or(std::to_string(i)));
    }
    return pickle.raw("u").text();
}

// The zip around a pickle and the storages of `tensors`.
inline std::string torch_file(const std::string& pickle, const std::vector<TorchTensor>& tensors,
                              const std::vector<ZipFile>& more = {}, bool checksums = false) {
    ZipWriter zip;
    zip.add({.name = "model/data.pkl", .data = pickle, .checksum = checksums});
    zip.add({.name = "model/byteorder", .data = "little", .checksum = checksums});
    for (size_t i = 0; i < tensors.size(); ++i) {
        if (!tensors[i].key)
            zip.add({.name = "model/data/" + std::to_string(i),
                     .data = tensors[i].data,
                     .checksum = checksums});
    }
    for (const ZipFile& entry : more) zip.add(entry);
    return zip.file();
}
inline std::string torch_file(const std::vector<TorchTensor>& tensors) {
    return torch_file(torch_pickle(tensors), tensors);
}

}  // namespace aerie::test
