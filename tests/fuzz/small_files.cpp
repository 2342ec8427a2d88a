// Fuzzes the small JSON files of a model; the first byte chooses the file. They are read from a
// folder, as in the program.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "draft/trees/tree.h"
#include "fuzz.h"
#include "io/checkpoint.h"
#include "io/write_files.h"
#include "text/chat_template.h"
#include "text/write_model.h"

namespace {

namespace fs = std::filesystem;
using namespace aerie;

void write(const fs::path& file, std::string_view text) {
    std::ofstream(file, std::ios::binary) << text;
}

// Holds the files that the fuzzed files refer to.
const fs::path& folder() {
    static const struct Folder {
        fs::path path = fs::temp_directory_path() / ("aerie_fuzz_" + std::to_string(::getpid()));
        Folder() {
            fs::create_directories(path);
            write(path / "tokenizer.model", test::ModelWriter{}.file());
            write(path / "a.safetensors",
                  test::SafetensorsWriter().add("w", "F32", "[1]", "1234").file());
        }
        ~Folder() { fs::remove_all(path); }
    } made;
    return made.path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view text = fuzz::text(data + 1, size - 1);
    return fuzz::run([&] {
        switch (data[0] % 3) {
            case 0:
                write(folder() / "model.safetensors.index.json", text);
                Checkpoint::open(folder());
                return;
            case 1: {
                write(folder() / "tokenizer_config.json", text);
                const Tokenizer tokenizer = Tokenizer::load(folder());
                Conversation conversation;
                conversation.add("user", "Hello");
                for (const int id : encode_chat(tokenizer, render_chat(tokenizer, conversation)))
                    if (id < 0 || id >= tokenizer.size()) std::abort();
                return;
            }
            default:
                write(folder() / "tree.json", text);
                read_tree_file(folder() / "tree.json");
        }
    });
}
