// Op Route: one workgroup per row chooses its experts, then one per expert lists its places.
#include "params.h"
#include "vulkan/backend.h"
#include "vulkan/glue.h"

namespace aerie::vulkan {

template <>
void VulkanBackend::execute(const Route& op) {
    const Routing& to = op.routing;
    const uint32_t experts = uint32_t(op.logits.cols), chosen = uint32_t(to.chosen());
    const RouteParams params = {.experts = experts,
                                .chosen = chosen,
                                .logits_stride = stride_words(op.logits),
                                .ids_stride = stride_words(to.ids),
                                .weights_stride = stride_words(to.weights),
                                .normalised = op.normalised};
    dispatch({"route"}, params, {writes(to.ids), writes(to.weights), reads(op.logits)},
             {uint32_t(to.rows())}, double(to.rows()) * experts * experts);
    const PlacesParams places = {.places = uint32_t(to.places()),
                                 .chosen = chosen,
                                 .ids_stride = stride_words(to.ids),
                                 .experts = experts,
                                 .most_tiles = uint32_t(to.tiles.rows)};
    dispatch({"route_places"}, places, {writes(to.order), writes(to.tiles), reads(to.ids)},
             {experts}, 2.0 * to.places() * experts);
}

}  // namespace aerie::vulkan
