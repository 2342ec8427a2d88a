// fuzz_seeds FOLDER REPOSITORY writes the seeds of all targets: FOLDER/<target>/<number>.
#include <fstream>

#include "seeds.h"

int main(int count, char** arguments) {
    if (count != 3) return 2;
    for (const auto& [target, seeds] : aerie::fuzz::seeds_of_targets(arguments[2])) {
        const std::filesystem::path folder = std::filesystem::path(arguments[1]) / target;
        std::filesystem::create_directories(folder);
        for (size_t i = 0; i < seeds.size(); ++i)
            std::ofstream(folder / std::to_string(i), std::ios::binary) << seeds[i];
    }
}
