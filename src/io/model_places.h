// Models that other programs keep on this machine: Hugging Face's cache, LM Studio, llama.cpp,
// Ollama. Nothing is written there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/repository.h"

namespace aerie {

// A model in the folder of a program.
struct PlacedModel {
    std::string name;            // finds the model again: "ORG/NAME:QUANT", "NAME:TAG"
    std::filesystem::path path;  // a GGUF file, or a folder with config.json
    std::string program;         // "Hugging Face", "LM Studio", "llama.cpp", "Ollama"
    uint64_t size_bytes = 0;     // sum of its weight files
};

// All of them, by program and name. Folders that cannot be read count as empty.
std::vector<PlacedModel> placed_models();

// The path of "ORG/NAME" or "ORG/NAME:QUANT" in Hugging Face's cache; empty if it does not have all
// of it.
std::filesystem::path find_in_hugging_face_cache(const RepositoryName& name);

// The path of a model by its name: "ORG/NAME", "ORG/NAME:QUANT", or Ollama's "NAME" (its tag
// "latest") and "NAME:TAG". Empty: none of the programs has it. Throws Error if a repository is
// there and no file of it is the one, or several are.
std::filesystem::path find_placed_model(const std::string& name);

// Size of a file in bytes; 0 if the path is no regular file or cannot be read.
uint64_t bytes_of(const std::filesystem::path& file);

// The files of a folder and of the folders in it, as a repository lists them, without sizes and
// hashes. Links to folders are not followed.
std::vector<RepositoryFile> files_in(const std::filesystem::path& folder);

// Bytes of the weights of a model: all parts of a GGUF file, or the weights of a folder.
uint64_t weight_bytes_of(const std::filesystem::path& model);

// The only GGUF model of a folder without config.json; empty if there is none. Throws Error that
// names them if there are several.
std::filesystem::path only_gguf_in(const std::filesystem::path& folder);

}  // namespace aerie
