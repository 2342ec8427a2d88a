// A routing that a device makes from logits, and downloads of its parts.
#pragma once

#include "ops/device_test.h"

namespace aerie {

struct RoutedRows {
    Array ids, weights, order;
    Buffer tiles_memory;  // dense, whatever lies around it
    Tensor tiles;

    Routing routing() const { return {ids, weights, order, tiles}; }
};

class RoutingTest : public DeviceTest {
  protected:
    RoutedRows poisoned_routing(int rows, int k, int experts) {
        const int count = most_expert_tiles(rows, k, experts);
        RoutedRows routed{poisoned_indices(rows, k),
                          poisoned(rows, k),
                          poisoned_indices(1, rows * k),
                          backend_->allocate(size_t(count) * sizeof(ExpertTile)),
                          {}};
        routed.tiles = dense(routed.tiles_memory.get(), DType::I32, count, kExpertTileInts);
        const std::vector<ExpertTile> poison(size_t(count), {-7, -7, -7});
        backend_->write(routed.tiles, poison.data());
        return routed;
    }
    RoutedRows route(const Tensor& logits, int k, bool normalised = true) {
        RoutedRows routed = poisoned_routing(logits.rows, k, logits.cols);
        backend_->run(Route{routed.routing(), logits, normalised});
        return routed;
    }
    std::vector<ExpertTile> download_tiles(const RoutedRows& routed) {
        std::vector<ExpertTile> tiles(size_t(routed.tiles.rows));
        backend_->read(routed.tiles, tiles.data());
        return tiles;
    }
};

}  // namespace aerie
