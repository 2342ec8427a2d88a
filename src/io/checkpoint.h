// All tensors of a model folder, whatever files they lie in.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/input_file.h"
#include "io/model_folder.h"
#include "io/tensor_file.h"

namespace aerie {

// Bytes of tensors in a file, by the name that its format has for their type.
using FileTypes = std::map<std::string, size_t>;

// Rows that are read as groups of `to`, where the tensor has groups of `from`: the other rows are
// zeros. They follow the group, or each of its halves.
struct SpreadRows {
    int from = 0, to = 0;
    bool by_halves = false;
};

class Checkpoint {
  public:
    // Looks for model.safetensors, model.safetensors.index.json, pytorch_model.bin,
    // pytorch_model.bin.index.json, the files of Medusa and Hydra, in this order. A shard name must
    // be one plain file name; a symlink may leave the folder only as the Hugging Face cache's do
    // (../../blobs). A tensor found twice, or listed in the index and absent from its shard, is
    // refused. Throws Error.
    static Checkpoint open(const std::filesystem::path& folder);
    // Whether there is one of these files.
    static bool is_in(const std::filesystem::path& folder);

    // Tensors that are made when they are read: `fill` does what `read` does. `name` stands for
    // the folder.
    using Fill =
        std::function<void(const NamedTensor&, DType as, size_t first, std::span<std::byte> out)>;
    // `files`: what they are made of, kept open by `fill`.
    static Checkpoint generated(const std::string& name, std::vector<NamedTensor> tensors,
                                Fill fill, FileTypes types = {},
                                std::vector<const InputFile*> files = {});

    // A tensor under another name. False, and nothing is done, if there is none or that is taken.
    bool rename(const std::string& from, const std::string& to);

    // From here on the tensor has these rows; it must be there and have whole groups.
    void spread_rows(const std::string& name, const SpreadRows& rows);
    bool is_spread(const std::string& name) const { return spread_.contains(name); }

    const NamedTensor* find(const std::string& name) const;  // nullptr if absent
    // Throws Error naming file, tensor and both shapes unless it is there with this shape and holds
    // weights.
    const NamedTensor& get(const std::string& name, std::span<const int64_t> shape) const;
    // From here on those that are quantised in types which `can_store` does not take are Q8_0.
    void fit(const std::function<bool(DType)>& can_store);

    // Elements of one of the tensors from `first` on, whole rows: in its type, or of one that is
    // quantised in that of its file, Q8_0 or F32. Several threads may read at once. Throws Error
    // naming the file if that has become shorter.
    void read(const NamedTensor& tensor, DType as, size_t first, std::span<std::byte> out) const;
    // All of it, in memory of its own, its checksum looked at.
    std::unique_ptr<std::byte[]> read(const NamedTensor& tensor) const;
    // Throws Error naming the file if the tensor has a checksum that differs.
    void check(const NamedTensor& tensor) const;

    // "folder/model.safetensors: tensor 'name'", for errors.
    std::string describe(const NamedTensor& tensor) const;

    // Called with the bytes of tensors that a device has taken, from the thread that loads; may be
    // empty.
    std::function<void(size_t)> on_loaded;

    const std::map<std::string, NamedTensor>& tensors() const { return tensors_; }
    const std::filesystem::path& folder() const { return folder_; }
    FileTypes file_types() const;
    std::vector<const InputFile*> files() const;  // that hold tensor data; none: it lies in none
    size_t size_bytes() const;  // of all tensor data, as it runs

  private:
    struct File {
        std::string name;
        std::unique_ptr<const InputFile> bytes;
    };
    const InputFile& file_of(const NamedTensor& tensor) const;
    // As it lies in the file.
    void read_stored(const NamedTensor& tensor, DType as, size_t first,
                     std::span<std::byte> out) const;
    void read_spread(const NamedTensor& tensor, const SpreadRows& rows, DType as, size_t first,
                     std::span<std::byte> out) const;
    using Reader = std::vector<NamedTensor>(const ByteSource&, const std::string& file);
    std::vector<NamedTensor> read_file(const std::string& name, Reader* read);
    void read_shards(const std::string& index, Reader* read);
    void add(NamedTensor tensor);  // of the file read last

    std::filesystem::path folder_;
    std::vector<File> files_;
    std::map<std::string, NamedTensor> tensors_;
    std::map<std::string, size_t> file_of_;  // tensor name -> index in files_
    std::map<std::string, SpreadRows> spread_;
    Fill fill_;                              // empty: the data is in the files
    std::vector<const InputFile*> made_of_;  // of `fill_`
    FileTypes file_types_;                   // empty: those of the tensors
};

}  // namespace aerie
