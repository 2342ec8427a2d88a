// Two small tokenizer.json files that use every part that is read, for damage and for fuzzing.
#pragma once

#include <string>

namespace aerie::test {

// clang-format off

// Byte-level, with tokens of a letter or two; a pattern cuts its words.
inline std::string small_byte_level_json() {
    return R"json({"version":"1.0","truncation":null,"padding":null,"added_tokens":[
{"id":9,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
{"id":10,"content":"<x>","single_word":true,"lstrip":true,"rstrip":true,"normalized":true,"special":false}],
"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Strip","strip_left":false,"strip_right":true}]},
"pre_tokenizer":{"type":"Sequence","pretokenizers":[
{"type":"Split","pattern":{"Regex":"(?i:'s)|[^\\s\\p{L}]+|\\s+(?!\\S)"},"behavior":"Isolated","invert":false},
{"type":"Digits","individual_digits":true},
{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}]},
"post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"TemplateProcessing",
"single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
"special_tokens":{"<s>":{"id":"<s>","ids":[9],"tokens":["<s>"]}}}]},
"decoder":{"type":"ByteLevel"},
"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":"","end_of_word_suffix":null,
"fuse_unk":false,"byte_fallback":false,"ignore_merges":true,
"vocab":{"a":0,"b":1,"\u0120":2,"ab":3,"\u0120a":4,"\u00c3":5,"\u00a9":6,"\u00c3\u00a9":7,"1":8},
"merges":["a b","\u0120 a","\u00c3 \u00a9"]}})json";
}

// Like SentencePiece: spaces become U+2581, unknown characters become bytes (only two of these
// exist).
inline std::string small_sentencepiece_json() {
    return R"json({"added_tokens":[{"id":0,"content":"<unk>","special":true,"normalized":false}],
"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"\u2581"},
{"type":"Replace","pattern":{"String":" "},"content":"\u2581"},{"type":"Replace","pattern":{"Regex":"b+"},"content":"b"}]},
"pre_tokenizer":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"first","split":true},
"post_processor":null,
"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},
{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,
"vocab":{"<unk>":0,"<0x0A>":1,"<0xFF>":2,"a":3,"\u2581":4,"\u2581a":5,"b":6},
"merges":[["\u2581","a"]]}})json";
}

// clang-format on

}  // namespace aerie::test
