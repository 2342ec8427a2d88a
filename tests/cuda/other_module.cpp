// A file in the place of libaerie_cuda.so that belongs to another version of aerie.
extern "C" __attribute__((visibility("default"))) const char* const* aerie_cuda_module() {
    static const char* const version = "0.0.1";
    return &version;
}
