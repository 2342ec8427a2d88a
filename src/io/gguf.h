// A model in GGUF: one file, or several pieces of it that lie side by side.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/gguf_file.h"
#include "io/input_file.h"

namespace aerie {

class Gguf {
  public:
    // Of a name that ends in -00002-of-00003.gguf all three pieces are opened, links as they lead;
    // the metadata is that of the first. Pieces must say by split.no, split.count and
    // split.tensors.count that they belong together. Refuses what read_gguf refuses, more than 512
    // pieces, and tensors that are in two of them. Throws Error naming the file.
    static Gguf open(const std::filesystem::path& path);

    const GgufMetadata& metadata() const { return metadata_; }
    const std::vector<GgufTensor>& tensors() const { return tensors_; }  // piece by piece
    const GgufTensor* find(const std::string& name) const;               // nullptr if absent
    size_t pieces() const { return pieces_.size(); }
    size_t size_bytes() const;  // of all tensor data
    std::vector<const InputFile*> files() const;  // piece by piece

    // Bytes of a tensor, or of a part of one, from byte `from` of it on; from + out.size() <=
    // data.size_bytes. Throws Error if the file has become shorter.
    void read(const GgufTensor& tensor, size_t from, std::span<std::byte> out) const;
    // The values of some rows; out.size() is rows * row_elements(). Throws Error naming the tensor,
    // also if its type holds no weights.
    void read_rows(const GgufTensor& tensor, int64_t first_row, std::span<float> out) const;

    // "folder/m.gguf: tensor 'name'", for errors.
    std::string describe(const GgufTensor& tensor) const;

  private:
    struct Piece {
        std::string file;  // for errors
        std::unique_ptr<const InputFile> bytes;
    };
    // The metadata of that piece.
    GgufMetadata add_piece(const std::filesystem::path& path);

    GgufMetadata metadata_;
    std::vector<GgufTensor> tensors_;
    std::unordered_map<std::string, size_t> index_;  // in tensors_
    std::vector<Piece> pieces_;
};

}  // namespace aerie
