// `aerie devices`: what can run models here.
#include <cstdio>

#include "backend/registry.h"
#include "commands.h"
#include "io/json.h"

namespace aerie {

int run_devices(const DevicesOptions& options) {
    const std::vector<Capabilities> devices = list_devices();
    if (options.json) {
        Json::Array list;
        for (const Capabilities& device : devices)
            list.push_back(
                Json::Object{{"name", device.name},
                             {"description", device.description},
                             {"memory_bytes", uint64_t(device.memory_bytes)},
                             {"details", Json::Array(device.details.begin(), device.details.end())},
                             {"problem", device.problem}});
        const Json result(
            Json::Object{{"schema", "aerie-devices-1"}, {"devices", std::move(list)}});
        std::printf("%s\n", result.dump().c_str());
        return 0;
    }
    for (const Capabilities& device : devices) {
        std::printf("%-10s %s, %.1f GiB\n", device.name.c_str(), device.description.c_str(),
                    double(device.memory_bytes) / double(1ull << 30));
        if (!device.problem.empty())
            std::printf("%-10s cannot be used: %s\n", "", device.problem.c_str());
        for (const std::string& line : device.details) std::printf("%-10s %s\n", "", line.c_str());
    }
    return 0;
}

}  // namespace aerie
