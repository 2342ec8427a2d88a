#include "talk/identity.h"

#include "core/arithmetic.h"
#include "core/hash.h"
#include "talk/weights_hash.h"

namespace aerie {

namespace {

// Results on a CPU have the same bits on every processor; results on a GPU belong to its model and
// driver.
std::string device_name(const Capabilities& device) {
    return device.kind == DeviceKind::cpu && device.threads > 0 ? "cpu" : device.description;
}

std::string draft_identity(const ModelFiles& files, const LoadOptions& options) {
    std::string all = options.draft.method;
    if (!files.head) return all;
    all += " " + weights_hash(*files.head, options.cache);
    if (files.draft_weights) all += std::string(" ") + name(*files.draft_weights);
    for (int layer : options.head_options.taps) all += " " + std::to_string(layer);
    if (options.head_options.theta) all += " " + std::to_string(*options.head_options.theta);
    all += " of " + std::to_string(files.draft_ids.size());
    if (const auto& tree = options.draft.tree)
        all += " " + std::to_string(tree->nodes) + "," + std::to_string(tree->levels) + "," +
               std::to_string(tree->top_k);
    // Drafters save other states if measurements size their trees.
    if (options.draft.static_tree) all += " given paths";
    if (const auto length = options.draft.chain_length) all += " chain " + std::to_string(*length);
    all += options.draft.cuts_fixed_trees() ? " measured" : " fixed";
    return all;
}

}  // namespace

Identity identity_of(const ModelFiles& files, const LoadOptions& options,
                     const Capabilities& device) {
    const std::string weights = options.weights ? name(*options.weights) : "as stored";
    return {weights_hash(files.target, options.cache) + " " +
                hex_digits(fnv1a(files.target.config.json.dump())),
            device_name(device) + ", weights " + weights + ", cache " + name(options.kv) +
                ", arithmetic " + std::to_string(kArithmeticVersion),
            draft_identity(files, options)};
}

}  // namespace aerie
