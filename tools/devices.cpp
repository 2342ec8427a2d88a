// `aerie devices`: the devices that can run models on this machine.
#include "backend/registry.h"
#include "commands.h"
#include "format.h"
#include "io/json.h"
#include "terminal.h"

namespace aerie {

int run_devices(const ListingOptions& options) {
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
        Json::Array absent;
        for (const AbsentBackend& backend : absent_backends())
            absent.push_back(Json::Object{{"backend", backend.title}, {"reason", backend.reason}});
        const Json result(Json::Object{{"schema", "aerie-devices-1"},
                                       {"devices", std::move(list)},
                                       {"absent", std::move(absent)}});
        print(result.dump() + "\n");
        return 0;
    }
    const std::string indent(11, ' ');
    std::string table;
    for (const Capabilities& device : devices) {
        table += format("%-10s ", device.name.c_str()) + device.description +
                 format(", %.1f GiB\n", double(device.memory_bytes) / double(1ull << 30));
        if (!device.problem.empty()) table += indent + "cannot be used: " + device.problem + "\n";
        for (const std::string& line : device.details) table += indent + line + "\n";
    }
    for (const AbsentBackend& backend : absent_backends())
        table += "no " + backend.title + " device: " + backend.reason + "\n";
    print(table);
    return 0;
}

}  // namespace aerie
