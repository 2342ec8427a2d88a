// Weights are known by the beginning and the end of each tensor: files of gigabytes are not read
// again.
#include "talk/identity.h"

#include <array>
#include <cstdio>

#include "core/arithmetic.h"
#include "core/hash.h"
#include "io/crc32.h"

namespace aerie {

namespace {

std::string hex(uint64_t value) {
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
    return text;
}

// Of a tensor: name, type, shape and some of its values.
std::string described(const Checkpoint& tensors, const NamedTensor& tensor) {
    constexpr size_t kElements = 256;
    const size_t all = tensor.data.size_bytes / size_bytes(tensor.dtype, kElements) * kElements;
    const DType type = tensor.file_type.value_or(tensor.dtype);
    std::string text = tensor.name + " " + name(type) + tensor.shape_text();
    if (all == 0) return text;
    std::vector<std::byte> values(size_bytes(type, kElements));
    uint32_t crc = 0;
    for (const size_t first : {size_t(0), all - kElements}) {
        tensors.read(tensor, type, first, values);
        crc = crc32(crc, values);
    }
    return text + " " + hex(crc);
}

std::string fingerprint(const ModelSource& source) {
    std::string all;
    for (const auto& [name, tensor] : source.tensors.tensors())
        all += described(source.tensors, tensor) + "\n";
    return hex(fnv1a(all));
}

// Of the device: bits are those of every processor, but of one GPU with its driver.
std::string device_name(const Capabilities& device) {
    return device.kind == DeviceKind::cpu && device.threads > 0 ? "cpu" : device.description;
}

std::string draft_identity(const ModelFiles& files, const LoadOptions& options) {
    std::string all = options.draft.method;
    if (!files.head) return all;
    all += " " + fingerprint(*files.head);
    if (files.draft_weights) all += std::string(" ") + name(*files.draft_weights);
    for (int layer : options.head_options.taps) all += " " + std::to_string(layer);
    if (options.head_options.theta) all += " " + std::to_string(*options.head_options.theta);
    all += " of " + std::to_string(files.draft_ids.size());
    if (const auto& tree = options.draft.tree)
        all += " " + std::to_string(tree->nodes) + "," + std::to_string(tree->levels) + "," +
               std::to_string(tree->top_k);
    return all;
}

}  // namespace

Identity identity_of(const ModelFiles& files, const LoadOptions& options,
                     const Capabilities& device) {
    const std::string weights = options.weights ? name(*options.weights) : "as stored";
    return {fingerprint(files.target) + " " + hex(fnv1a(files.target.config.json.dump())),
            device_name(device) + ", weights " + weights + ", cache " + name(options.kv) +
                ", arithmetic " + std::to_string(kArithmeticVersion),
            draft_identity(files, options)};
}

}  // namespace aerie
