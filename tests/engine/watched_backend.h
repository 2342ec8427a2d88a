// A device with capabilities that a test sets, which counts uploads and allocations, and which may
// be out of memory.
#pragma once

#include <vector>

#include "backend/observed.h"
#include "backend/registry.h"
#include "core/error.h"
#include "engine/accept.h"
#include "engine/session.h"

namespace aerie::test {

class WatchedBackend : public ObservedBackend {
  public:
    explicit WatchedBackend(const std::string& device)
        : ObservedBackend(open_device(device, {1})), said(ObservedBackend::capabilities()) {}

    const Capabilities& capabilities() const override { return said; }
    Buffer allocate(size_t size_bytes) override {
        if (full) throw Error("out of memory");
        allocated.push_back(size_bytes);
        return ObservedBackend::allocate(size_bytes);
    }
    std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                          WeightUse use) override {
        ++uploads;
        return ObservedBackend::upload_weight(blocks, use);
    }

    Capabilities said;
    bool full = false;
    std::vector<size_t> allocated;
    int uploads = 0;
};

// The first `count` tokens that a session puts out.
inline std::vector<int> decode(Session& session, const std::vector<int>& prompt, int count,
                               const Sampling& sampling = {}) {
    session.begin(sampling);
    ChosenTokens chosen = session.prefill(prompt);
    std::vector<int> ids(chosen.tokens.begin(), chosen.tokens.end());
    while (int(ids.size()) < count) {
        const TokenTree tree = session.propose();
        const NodeList choices = session.verify(tree);
        chosen = session.commit(tree, accept(tree, choices));
        ids.insert(ids.end(), chosen.tokens.begin(), chosen.tokens.end());
    }
    ids.resize(size_t(count));
    return ids;
}

}  // namespace aerie::test
